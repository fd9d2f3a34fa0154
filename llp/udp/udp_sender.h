// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <span>

#include "llp/datagram_link.h"
#include "llp/udp/path_mtu.h"
#include "llp/udp/udp_options.h"
#include "llp/udp/udp_socket.h"

namespace diwarp::llp {

/// A way for messages into the kernel besides system calls.
class SendPath {
 public:
  virtual ~SendPath() = default;
  /// As sendmmsg(2), without blocking. 0: it takes none now, though system calls may succeed.
  virtual ssize_t send(std::span<mmsghdr> messages) = 0;
};

/// A queue of the host's (qdisc, driver) that drops what it has no room for is tried so often; then
/// the datagrams count as sent, and lost on the way, as where the system says nothing of it.
inline constexpr uint32_t kMostQueueRefusals = 16;

/// Sends a link's bursts: trains of equal datagrams as one message where the kernel segments, all
/// others as a message each.
class UdpSender {
 public:
  /// The socket has to outlive it.
  UdpSender(UdpSocket& socket, const UdpOptions& options);

  /// As UdpLink has it.
  SendResult send(std::span<const OutgoingDatagram> burst);
  /// The same, but the path is asked before the system calls are, except for a short datagram that
  /// leaves alone.
  SendResult send(std::span<const OutgoingDatagram> burst, SendPath& path);
  /// As UdpLink has it.
  size_t max_datagram(const Address& to) {
    return fragment_ ? max_fragmented(to) : path_mtu_.max_datagram(to);
  }

  /// Whether the kernel segments (UDP_SEGMENT).
  bool gso() const { return gso_; }

 private:
  struct Submitted {
    size_t datagrams = 0;
    int error = 0;
    bool refused_train = false;  // perhaps for being one
    size_t first_message = 1;    // datagrams in it
  };

  size_t max_fragmented(const Address& to);
  /// `submit` hands the front of what is left to the system.
  template <class Submit>
  SendResult send_all(std::span<const OutgoingDatagram> burst, Submit submit);
  template <class Submit>
  SendResult send_on(std::span<const OutgoingDatagram> burst, Submitted step, Submit submit);
  size_t train_length(std::span<const OutgoingDatagram> burst);
  Submitted submit(std::span<const OutgoingDatagram> burst, SendPath* path);
  [[gnu::noinline]] Submitted submit_messages(std::span<const OutgoingDatagram> burst,
                                              SendPath* path);
  ssize_t send_lone(const OutgoingDatagram& datagram);
  ssize_t send_whole(const OutgoingDatagram& datagram, ConstBytes bytes);
  ssize_t send_messages(std::span<mmsghdr> messages, SendPath* path);
  Submitted submitted(const OutgoingDatagram& first, size_t train, ssize_t sent);
  void stop_trains();
  bool cannot_fragment(const OutgoingDatagram& datagram, int error);
  bool is_of_icmp(int error) const;
  bool gives_up(int error);

  UdpSocket& socket_;
  const bool fragment_;
  bool gso_;
  uint32_t queue_refusals_ = 0;  // ENOBUFS in a row
  PathMtu path_mtu_;
};

}  // namespace diwarp::llp
