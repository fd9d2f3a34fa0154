// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "llp/datagram_link.h"

namespace diwarp::llp {

/// The report in an entry of an error queue, as recvmsg(MSG_ERRQUEUE) left it, with the bytes that
/// the ICMP message quotes; none where the entry is of this host's own making, or is about the size
/// of a datagram: the kernel learns that from the same message, for all sockets.
std::optional<IcmpReport> icmp_report_in(msghdr& entry, ConstBytes quoted);

/// The error queue of a UDP socket (IP_RECVERR): what ICMP messages say of datagrams that it sent.
/// Besides, each message makes one call to the socket, of whatever kind, fail once. Such a failure
/// says nothing of that call: collect() what came, and call again. The queue has to be read, for
/// epoll tells of it for as long as something is in it.
class IcmpErrors {
 public:
  /// Entries that one look reads. While more are there, the next call to the socket fails as well.
  static constexpr size_t kEntriesPerLook = 32;
  /// Calls in a row that may fail for messages that came meanwhile; then it is not this turn that
  /// goes on, so that a flood of them takes no more time than others' packets do.
  static constexpr int kMostRetries = 4;

  explicit IcmpErrors(int fd) : fd_(fd) {}

  /// Has the kernel keep what ICMP messages say, of both families where the socket serves both.
  void listen(sa_family_t family);
  void on_report(std::function<void(const IcmpReport&)> callback) {
    callback_ = std::move(callback);
  }
  void report(const IcmpReport& report) const {
    if (callback_) callback_(report);
  }
  /// Reads and reports what is there; how many entries were of ICMP messages, whatever they say.
  size_t collect();

 private:
  const int fd_;
  std::function<void(const IcmpReport&)> callback_;
};

}  // namespace diwarp::llp
