// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <diwarp/verbs.h>

namespace fake {

class Context;
class Qp;

/// One entry of FAKE_RDMA_CORE_DEVICES.
struct DeviceSpec {
  std::string name;
  std::string address;
  bool down = false;
  bool infiniband = false;
  uint32_t vendor = 0;
  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

/// The memory that an lkey names.
struct Key {
  std::byte* address = nullptr;
  uint64_t iova = 0;  ///< what requests call its first byte
  diwarp::STag stag = 0;
  bool read_sink = false;  ///< peers may write there
};

/// A device: an ibv_device with the software RNIC behind it. It lives as long as the process, since
/// programs keep pointers to it. The RNIC lives as long as some context of the device.
///
/// `mutex` guards the tables. Lock order: a context's, a completion queue's, this, a queue pair's,
/// keys_mutex_.
class Adapter : public ibv_device {
 public:
  Adapter(const DeviceSpec& spec, size_t number);

  const DeviceSpec spec;
  const diwarp::Address address;
  std::atomic<bool> port_up;
  std::atomic<bool> gone{false};

  /// Refuses with ENODEV where it is gone, or its address is none of this host.
  std::shared_ptr<diwarp::Device> open();
  /// The context that librdmacm has for its ids.
  Context& cm_context();
  uint64_t guid() const;  ///< in host order

  void add_key(uint32_t lkey, const Key& key);
  void remove_key(uint32_t lkey);
  std::optional<Key> key(uint32_t lkey) const;
  /// An lkey beside `rkey` that no other region has.
  uint32_t other_key(uint32_t rkey) const;

  /// The queue pair of this number; null: there is none.
  Qp* queue_pair(uint32_t number);

  std::mutex mutex;
  std::vector<Context*> contexts;
  std::unordered_map<uint32_t, Qp*> queue_pairs;

 private:
  std::mutex opening_;
  std::weak_ptr<diwarp::Device> device_;
  std::unique_ptr<Context> cm_context_;
  mutable std::mutex keys_mutex_;
  std::unordered_map<uint32_t, Key> keys_;
};

inline Adapter& adapter_of(ibv_device* device) { return *static_cast<Adapter*>(device); }

/// The devices that are there.
std::vector<Adapter*> adapters();
/// Null: there is none of this name, or at this address (the port does not matter).
Adapter* find_adapter(std::string_view name);
Adapter* find_adapter(const diwarp::Address& address);
/// Reads the environment variable again. Devices that are listed as before stay.
void reload_adapters();
void remove_adapter(Adapter& adapter);

/// A number that no other object has or had.
uint64_t next_serial();

}  // namespace fake
