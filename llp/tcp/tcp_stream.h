// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "llp/stream.h"
#include "llp/tcp/tcp_peer.h"

namespace diwarp::llp {

class ZeroCopySender;

/// A connected TCP socket. Delays nothing (TCP_NODELAY): the layer above gathers what belongs
/// together.
class TcpStream : public Stream {
 public:
  ~TcpStream() override;

  /// Takes a connected TCP descriptor, connected by either side, also after bytes have passed over
  /// it. Throws Error (Errc::invalid_argument), and leaves the descriptor as it is, when it is no
  /// connected TCP socket.
  static std::unique_ptr<TcpStream> adopt(int connected_descriptor);

  /// Of a connected TCP socket that is non-blocking and closed on exec. `peer`: as accept(2) told
  /// it, for a socket whose peer is gone tells nothing any more.
  static std::unique_ptr<TcpStream> over(UniqueFd connected);
  static std::unique_ptr<TcpStream> over(UniqueFd connected, const Address& peer);

  /// Takes at most 1,024 pieces a call. Nothing to send: would_block.
  IoResult send(std::span<const ConstBytes> pieces) override;
  /// By MSG_ZEROCOPY. False as well where other code used that on the socket before.
  bool allow_zero_copy(size_t from, Counters& counters) override;
  IoResult send_zero_copy(std::span<const ConstBytes> pieces) override;
  uint64_t zero_copy_calls() const override;
  uint64_t zero_copy_released() override;
  bool trim() override;
  /// An empty buffer: would_block.
  IoResult receive(Bytes buffer) override;
  /// At most 1,024 buffers a call.
  IoResult receive_into(std::span<const Bytes> buffers) override;
  bool leave_engine() override;
  void shutdown_send() override;
  /// SO_ERROR; ECONNABORTED once the stream is gone.
  int error() override;
  /// Closes the descriptor; later calls fail with ECONNABORTED.
  void abort() override;

  /// TCP_MAXSEG: the bytes that the kernel puts into a segment now, TCP options deducted. It
  /// follows the path MTU and the peer's window, and costs a system call. 536 once the stream is
  /// gone.
  size_t maximum_segment() const override;

  Address local_address() const override { return local_; }
  Address peer_address() const override { return peer_; }
  int descriptor() const override { return tcp_.fd.get(); }

  PeerProbe* peer_probe() override { return &tcp_; }
  bool set_busy_poll(Duration time) override;

  /// The descriptor is still non-blocking.
  int release() override { return tcp_.fd.release(); }

 protected:
  TcpStream(UniqueFd fd, const Address& peer);

 private:
  IoResult send_gathered(std::span<const ConstBytes> pieces, Bytes room);

  TcpPeer tcp_;
  std::unique_ptr<ZeroCopySender> zero_copy_;  // null: all is copied
  Address local_;
  Address peer_;
};

}  // namespace diwarp::llp
