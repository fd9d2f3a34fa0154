// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <vector>

#include "diwarp/error.h"
#include "llp/memory/memory_network.h"
#include "llp/memory/ready_signal.h"

namespace diwarp::llp {
namespace {

constexpr uint32_t kFirstPort = 49152;  // of the dynamic ports (RFC 6335 section 6)
constexpr uint32_t kEndPort = 65536;

/// Copies `pieces` one after another; `target` is large enough.
void gather(std::span<const ConstBytes> pieces, std::byte* target) {
  for (ConstBytes piece : pieces) target = std::copy(piece.begin(), piece.end(), target);
}

bool is_group(const Address& address) {
  const bool subnet_broadcast =
      address.family() == AddressFamily::ipv4 && address.bytes().back() == 255;
  return address.is_multicast() || subnet_broadcast;
}

}  // namespace

/// The queue of one address: filled by any thread, emptied by the one that owns the link.
class MemoryNetwork::Endpoint {
 public:
  /// `group`: of a group, which what comes is marked with.
  Endpoint(const MemoryOptions& options, bool group)
      : max_datagram_(options.max_datagram),
        group_(group),
        // Left as it comes: pages that no datagram reaches are never touched.
        memory_(std::make_unique_for_overwrite<std::byte[]>(options.max_datagram *
                                                            options.queue_datagrams)),
        queue_(options.queue_datagrams) {}

  void deliver(const Address& from, const OutgoingDatagram& datagram) {
    {
      const std::lock_guard lock(mutex_);
      if (count_ == queue_.size()) {
        ++overflowed_;
        return;
      }
      const size_t position = (head_ + count_++) % queue_.size();
      queue_[position] = {from, datagram.size()};
      gather(datagram.pieces, bytes_at(position));
    }
    ready_.fire();
  }

  /// Packs as many datagrams into the batch's slots as fit.
  size_t take(ReceiveBatch& batch) {
    const std::lock_guard lock(mutex_);
    Bytes rest;
    for (size_t slot = 0; count_ > 0 && batch.room() > 0;) {
      const size_t size = std::min(queue_[head_].size, batch.slot_bytes());
      if (rest.size() < size || rest.data() == nullptr) {
        if (slot == batch.slots()) break;
        rest = batch.slot(slot++);
      }
      std::copy_n(bytes_at(head_), size, rest.data());
      batch.add(queue_[head_].from, rest.first(size), group_);
      rest = rest.subspan(size);
      head_ = (head_ + 1) % queue_.size();
      --count_;
    }
    return batch.datagrams().size();
  }

  void on_ready(std::function<void()> callback) {
    ready_.set(std::move(callback));
    if (waiting()) ready_.fire();
  }

  uint64_t overflowed() const {
    const std::lock_guard lock(mutex_);
    return overflowed_;
  }

 private:
  struct Queued {
    Address from;
    size_t size = 0;
  };

  std::byte* bytes_at(size_t position) { return memory_.get() + position * max_datagram_; }

  bool waiting() const {
    const std::lock_guard lock(mutex_);
    return count_ > 0;
  }

  const size_t max_datagram_;
  const bool group_;
  ReadySignal ready_;
  mutable std::mutex mutex_;  // guards all below
  std::unique_ptr<std::byte[]> memory_;
  std::vector<Queued> queue_;
  size_t head_ = 0;
  size_t count_ = 0;
  uint64_t overflowed_ = 0;
};

class MemoryNetwork::Link final : public DatagramLink {
 public:
  Link(std::shared_ptr<MemoryNetwork> network, const Address& address,
       std::shared_ptr<Endpoint> endpoint, bool loopback)
      : network_(std::move(network)),
        address_(address),
        endpoint_(std::move(endpoint)),
        loopback_(loopback) {}

  ~Link() override {
    network_->close(address_);
    // A sender may still hold the endpoint.
    endpoint_->on_ready({});
  }

  SendResult send(std::span<const OutgoingDatagram> burst) override {
    SendResult result;
    for (const OutgoingDatagram& datagram : burst) {
      if (datagram.size() > network_->options().max_datagram) {
        return {result.sent, SendStatus::refused, EMSGSIZE};
      }
      network_->send(address_, loopback_, datagram);
      ++result.sent;
    }
    return result;
  }

  size_t receive(ReceiveBatch& batch) override {
    batch.clear();
    return endpoint_->take(batch);
  }

  size_t max_datagram(const Address& /*to*/) override { return network_->options().max_datagram; }
  Address local_address() const override { return address_; }
  std::unique_ptr<DatagramLink> open_group(const Address& group,
                                           std::string_view /*interface*/) override;
  void on_ready(std::function<void()> callback) override {
    endpoint_->on_ready(std::move(callback));
  }
  uint64_t overflowed() const override { return endpoint_->overflowed(); }

 private:
  const std::shared_ptr<MemoryNetwork> network_;
  const Address address_;
  const std::shared_ptr<Endpoint> endpoint_;
  const bool loopback_;
};

/// Receives what is sent to a group.
class MemoryNetwork::GroupLink final : public DatagramLink {
 public:
  GroupLink(std::shared_ptr<MemoryNetwork> network, const Address& group, const Address& host)
      : network_(std::move(network)),
        group_(group),
        endpoint_(std::make_shared<Endpoint>(network_->options(), true)) {
    network_->join(group_, {host, endpoint_});
  }

  ~GroupLink() override {
    network_->leave(group_, endpoint_.get());
    // A sender may still hold the endpoint.
    endpoint_->on_ready({});
  }

  SendResult send(std::span<const OutgoingDatagram>) override {
    return {0, SendStatus::refused, EOPNOTSUPP};
  }
  size_t receive(ReceiveBatch& batch) override {
    batch.clear();
    return endpoint_->take(batch);
  }
  size_t max_datagram(const Address& /*to*/) override { return network_->options().max_datagram; }
  Address local_address() const override { return group_; }
  void on_ready(std::function<void()> callback) override {
    endpoint_->on_ready(std::move(callback));
  }
  uint64_t overflowed() const override { return endpoint_->overflowed(); }

 private:
  const std::shared_ptr<MemoryNetwork> network_;
  const Address group_;
  const std::shared_ptr<Endpoint> endpoint_;
};

std::unique_ptr<DatagramLink> MemoryNetwork::Link::open_group(const Address& group,
                                                              std::string_view /*interface*/) {
  if (!is_group(group)) {
    throw Error(Errc::invalid_argument, "Memory address " + group.host() + " is no group");
  }
  const uint16_t port = group.port() != 0 ? group.port() : address_.port();
  return std::make_unique<GroupLink>(network_, group.with_port(port), address_.with_port(0));
}

std::shared_ptr<MemoryNetwork> MemoryNetwork::create(const MemoryOptions& options) {
  return std::shared_ptr<MemoryNetwork>(new MemoryNetwork(options));
}

std::unique_ptr<DatagramLink> MemoryNetwork::open(const Address& address, bool multicast_loopback) {
  auto endpoint = std::make_shared<Endpoint>(options_, false);
  const std::lock_guard lock(mutex_);
  const Address chosen = address.port() == 0 ? choose_port(address) : address;
  if (!endpoints_.emplace(chosen, endpoint).second) {
    throw Error(Errc::address_in_use,
                "Memory address " + chosen.to_string() + " cannot be opened, it is open already");
  }
  return std::make_unique<Link>(shared_from_this(), chosen, std::move(endpoint),
                                multicast_loopback);
}

Address MemoryNetwork::choose_port(const Address& address) const {
  for (uint32_t port = kFirstPort; port < kEndPort; ++port) {
    const Address candidate = address.with_port(static_cast<uint16_t>(port));
    if (!endpoints_.contains(candidate)) return candidate;
  }
  throw Error(Errc::no_resources, "Memory address " + address.to_string() + " has no free port");
}

std::shared_ptr<MemoryNetwork::Endpoint> MemoryNetwork::find(const Address& address) const {
  const std::lock_guard lock(mutex_);
  const auto found = endpoints_.find(address);
  return found == endpoints_.end() ? nullptr : found->second;
}

void MemoryNetwork::close(const Address& address) {
  const std::lock_guard lock(mutex_);
  endpoints_.erase(address);
}

void MemoryNetwork::join(const Address& group, const Member& member) {
  const std::lock_guard lock(mutex_);
  groups_[group].push_back(member);
}

void MemoryNetwork::leave(const Address& group, const Endpoint* endpoint) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(group);
  std::erase_if(found->second, [&](const Member& m) { return m.endpoint.get() == endpoint; });
  if (found->second.empty()) groups_.erase(found);
}

void MemoryNetwork::send(const Address& from, bool loopback,
                         const OutgoingDatagram& datagram) const {
  if (!is_group(datagram.to)) {
    if (const auto endpoint = find(datagram.to)) endpoint->deliver(from, datagram);
    return;
  }
  // The callbacks that this fires call into no endpoint, so the lock may be held.
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(datagram.to);
  if (found == groups_.end()) return;
  // guard(multicast-loopback): without || !datagram.to.is_multicast()
  const bool everyone = loopback || !datagram.to.is_multicast();
  for (const Member& member : found->second) {
    // guard(multicast-loopback): => member.endpoint->deliver(from, datagram);
    if (everyone || member.host != from.with_port(0)) member.endpoint->deliver(from, datagram);
  }
}

}  // namespace diwarp::llp
