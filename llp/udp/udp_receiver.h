// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "llp/datagram_link.h"
#include "llp/udp/coalescing.h"
#include "llp/udp/udp_socket.h"

namespace diwarp::llp {

/// Receives what comes to a link's socket, and counts what the socket had no room for.
class UdpReceiver {
 public:
  /// Room for what the kernel tells beside a datagram: the drop counter, the segment size, and what
  /// an adopted socket may have asked for.
  static constexpr size_t kControlBytes = 192;
  /// The most messages that one receive takes from the kernel, lone datagrams or trains.
  static constexpr size_t kMessagesPerReceive = 64;
  /// Receives without a datagram, of which one looks into the error queue: what a call that sent
  /// something had to tell may have been passed over.
  static constexpr uint32_t kEmptyPerLook = 64;
  /// Lone datagrams that have to come one after the other before two slots are tried, where that
  /// was in vain before: at most so many.
  static constexpr uint32_t kLoneBeforeTwo = 16;

  /// The socket has to outlive it. `coalesce`: the kernel may.
  UdpReceiver(UdpSocket& socket, bool coalesce);

  /// As UdpLink has it.
  size_t receive(ReceiveBatch& batch);

  // --- The parts of it, for a link that receives by other means as well.

  /// The slots to fill next; 0: there is no room.
  size_t slots_wanted(const ReceiveBatch& batch) const;
  void fit_offload(const ReceiveBatch& batch);
  /// Receives the datagrams that wait in the socket, into so many slots at most. Coalescing stays
  /// as it is.
  size_t receive_waiting(ReceiveBatch& batch, size_t slots);
  /// Adds the datagram, or each one of the train, that lies in `received`, as `header` describes
  /// it.
  void hand_up(ReceiveBatch& batch, Bytes received, msghdr& header);

  /// Whether receive() would find something.
  bool something_waits() const;
  /// As UdpLink has both.
  void learn_overflow();
  uint64_t overflowed() const { return overflowed_; }

  /// Whether the kernel coalesces (UDP_GRO), while there is something to coalesce.
  bool gro() const { return gro_; }

 private:
  void fit_coalescing(Coalescing::Change change);
  void fit_appetite(size_t wanted, size_t got);
  size_t receive_one(ReceiveBatch& batch);
  size_t receive_plain(ReceiveBatch& batch);
  size_t receive_many(ReceiveBatch& batch, size_t wanted);
  template <class Call>
  auto receive_past_errors(Call call) const;
  void count_overflow(uint32_t drops);

  UdpSocket& socket_;
  Coalescing coalescing_;    // while gro_
  uint32_t appetite_ = 1;    // slots to ask the kernel for next
  uint32_t patience_ = 1;    // lone datagrams in a row before it asks for two
  uint32_t lone_ = 0;        // in a row by now
  uint32_t empty_ = 0;       // receives that brought nothing
  uint32_t drops_seen_ = 0;  // the socket's own counter, which wraps
  bool gro_;
  const bool reads_destinations_;  // or control messages tell what was sent to one
  uint64_t overflowed_ = 0;
};

}  // namespace diwarp::llp
