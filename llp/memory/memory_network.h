// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "llp/datagram_link.h"
#include "llp/stream.h"

namespace diwarp::llp {

struct MemoryOptions {
  /// The largest datagram, in bytes; longer ones are refused (EMSGSIZE). The default is what
  /// Ethernet carries.
  size_t max_datagram = 1472;
  /// How many datagrams wait at an endpoint; those beyond are lost and counted there.
  size_t queue_datagrams = 1024;
};

/// Datagrams between endpoints of one process: no sockets, no loss but by overflow, order kept.
/// Endpoints may be used from different threads.
///
/// Groups are multicast addresses, 255.255.255.255, and IPv4 addresses that end in 255 (every host
/// is in a subnet of 256). Endpoints are on one host if their addresses are the same but for the
/// port; there is one interface, whatever its name.
///
/// An endpoint's on_ready callback runs in the sender's thread; it must not call into any endpoint
/// of the network.
class MemoryNetwork : public std::enable_shared_from_this<MemoryNetwork> {
 public:
  static std::shared_ptr<MemoryNetwork> create(const MemoryOptions& options = {});

  /// A new endpoint; port 0 takes a free one. Addresses match exactly ("any" is no wildcard), and a
  /// datagram to one that nobody opened is lost. Throws Error (Errc::address_in_use). The
  /// endpoint keeps the network alive. A datagram that it sends to a multicast group comes back to
  /// members with its own address if `multicast_loopback` is true, else only to others.
  std::unique_ptr<DatagramLink> open(const Address& address, bool multicast_loopback = true);

  const MemoryOptions& options() const { return options_; }

 private:
  class Endpoint;
  class Link;
  class GroupLink;
  struct Member {
    Address host;  // port 0
    std::shared_ptr<Endpoint> endpoint;
  };

  explicit MemoryNetwork(const MemoryOptions& options) : options_(options) {}
  Address choose_port(const Address& address) const;
  std::shared_ptr<Endpoint> find(const Address& address) const;
  void close(const Address& address);
  void join(const Address& group, const Member& member);
  void leave(const Address& group, const Endpoint* endpoint);
  void send(const Address& from, bool loopback, const OutgoingDatagram& datagram) const;

  const MemoryOptions options_;
  mutable std::mutex mutex_;  // guards those below
  std::unordered_map<Address, std::shared_ptr<Endpoint>> endpoints_;
  std::unordered_map<Address, std::vector<Member>> groups_;
};

/// Two ends of a byte stream inside the process, for two threads. `buffer_bytes` is how much each
/// direction holds before send() would block. Addresses are made up. After abort() both ends fail
/// with ECONNRESET at once, whatever was still unread. Destroying an end that has unread bytes
/// resets the other, else ends it in order. The on_ready callback runs in the other end's thread
/// and must not call into either end.
std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> memory_stream_pair(
    size_t buffer_bytes = size_t{256} << 10, size_t maximum_segment = 1460);

}  // namespace diwarp::llp
