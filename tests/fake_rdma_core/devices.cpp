// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/devices.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "fake_rdma_core/context.h"
#include "fake_rdma_core/failure.h"

namespace fake {
namespace {

constexpr std::string_view kVendor = "vendor=";

/// "fake1=127.0.0.2:down", "fake2=[::1]"
DeviceSpec parse_spec(const std::string& text) {
  DeviceSpec spec;
  std::istringstream parts(text);
  std::getline(parts, spec.name, '=');
  const bool bracketed = parts.peek() == '[';
  if (bracketed) parts.ignore();
  std::getline(parts, spec.address, bracketed ? ']' : ':');
  for (std::string suffix; std::getline(parts, suffix, ':');) {
    spec.down = spec.down || suffix == "down";
    spec.infiniband = spec.infiniband || suffix == "infiniband";
    if (suffix.starts_with(kVendor))
      spec.vendor = static_cast<uint32_t>(std::stoul(suffix.substr(kVendor.size()), nullptr, 16));
  }
  return spec;
}

std::vector<DeviceSpec> read_specs() {
  const char* const variable = std::getenv("FAKE_RDMA_CORE_DEVICES");
  std::istringstream words(variable == nullptr ? "fake0=127.0.0.1" : variable);
  std::vector<DeviceSpec> specs;
  for (std::string word; words >> word;) specs.push_back(parse_spec(word));
  return specs;
}

void copy_text(char* target, size_t size, const std::string& text) {
  std::strncpy(target, text.c_str(), size - 1);
}

/// The devices that are there, and all that ever were: programs may have pointers to them. Both are
/// leaked, as threads may use them until the process ends.
struct Registry {
  std::mutex mutex;
  bool loaded = false;
  std::vector<Adapter*> present;
  std::vector<std::unique_ptr<Adapter>> ever;

  Adapter* adapter_for(const DeviceSpec& spec) {
    for (Adapter* adapter : present)
      if (adapter->spec == spec) return adapter;
    return ever.emplace_back(std::make_unique<Adapter>(spec, ever.size())).get();
  }
  void load() {
    std::vector<Adapter*> listed;
    for (const DeviceSpec& spec : read_specs()) listed.push_back(adapter_for(spec));
    present = std::move(listed);
    for (Adapter* adapter : present) adapter->port_up = !adapter->spec.down;
    loaded = true;
  }
};

Registry& registry() {
  static Registry& only = *new Registry;
  return only;
}

}  // namespace

Adapter::Adapter(const DeviceSpec& its_spec, size_t number)
    : ibv_device{},
      spec(its_spec),
      address(diwarp::Address::parse(its_spec.address)),
      port_up(!its_spec.down) {
  node_type = spec.infiniband ? IBV_NODE_CA : IBV_NODE_RNIC;
  transport_type = spec.infiniband ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP;
  const std::string uverbs = "uverbs" + std::to_string(number);
  copy_text(name, sizeof name, spec.name);
  copy_text(dev_name, sizeof dev_name, uverbs);
  copy_text(dev_path, sizeof dev_path, "/sys/class/infiniband_verbs/" + uverbs);
  copy_text(ibdev_path, sizeof ibdev_path, "/sys/class/infiniband/" + spec.name);
}

std::shared_ptr<diwarp::Device> Adapter::open() {
  const std::lock_guard lock(opening_);
  refuse_if(gone, ENODEV);
  std::shared_ptr<diwarp::Device> device = device_.lock();
  if (!device) device = std::make_shared<diwarp::Device>(diwarp::Device::open(address));
  device_ = device;
  return device;
}

Context& Adapter::cm_context() {
  static std::mutex making;  // not `opening_`, which the constructor takes
  const std::lock_guard lock(making);
  if (!cm_context_) cm_context_ = std::make_unique<Context>(*this);
  return *cm_context_;
}

uint64_t Adapter::guid() const {
  uint64_t guid = 0x0200;
  for (const uint8_t byte : address.bytes()) guid = guid << 8 | byte;
  return guid;
}

void Adapter::add_key(uint32_t lkey, const Key& key) {
  const std::lock_guard lock(keys_mutex_);
  keys_[lkey] = key;
}

void Adapter::remove_key(uint32_t lkey) {
  const std::lock_guard lock(keys_mutex_);
  keys_.erase(lkey);
}

std::optional<Key> Adapter::key(uint32_t lkey) const {
  const std::lock_guard lock(keys_mutex_);
  const auto found = keys_.find(lkey);
  return found == keys_.end() ? std::nullopt : std::optional(found->second);
}

uint32_t Adapter::other_key(uint32_t rkey) const {
  const std::lock_guard lock(keys_mutex_);
  uint32_t lkey = ~rkey;
  while (lkey == rkey || keys_.contains(lkey)) ++lkey;
  return lkey;
}

Qp* Adapter::queue_pair(uint32_t number) {
  const std::lock_guard lock(mutex);
  const auto found = queue_pairs.find(number);
  return found == queue_pairs.end() ? nullptr : found->second;
}

std::vector<Adapter*> adapters() {
  const std::lock_guard lock(registry().mutex);
  if (!registry().loaded) registry().load();
  return registry().present;
}

Adapter* find_adapter(std::string_view name) {
  for (Adapter* adapter : adapters())
    if (adapter->spec.name == name) return adapter;
  return nullptr;
}

Adapter* find_adapter(const diwarp::Address& address) {
  for (Adapter* adapter : adapters())
    if (adapter->address == address.with_port(0)) return adapter;
  return nullptr;
}

void reload_adapters() {
  const std::lock_guard lock(registry().mutex);
  registry().load();
}

void remove_adapter(Adapter& adapter) {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().present, &adapter);
}

uint64_t next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace fake
