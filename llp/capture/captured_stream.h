// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llp/capture/capture.h"
#include "llp/forwarding.h"

namespace diwarp::llp {

/// A TCP connection as a capture shows it: from its begin on, segments as they were sent and
/// received, each of which acknowledges all that came before.
class CapturedConnection {
 public:
  CapturedConnection(Capture& capture, const Address& local, const Address& peer);

  void begin();
  void data(WallTime at, Direction direction, std::span<const ConstBytes> pieces, size_t bytes);
  /// A segment without data, with these flags and kTcpAck.
  void control(Direction direction, uint8_t flags);

 private:
  void segment(WallTime at, Direction direction, uint8_t flags, std::span<const ConstBytes> pieces,
               size_t bytes);

  Capture& capture_;
  const Address local_;
  const Address peer_;
  uint32_t sent_ = 0;      // the next number of this side, modulo 2^32
  uint32_t received_ = 0;  // and of the peer
  bool ended_ = false;     // nothing follows a reset
};

/// Passes on all calls, those that bring bytes past other decorators included.
class CapturedStream final : public ForwardingStream {
 public:
  CapturedStream(std::unique_ptr<Stream> inner, CapturedConnection connection)
      : ForwardingStream(std::move(inner)), connection_(connection) {}

  IoResult send(std::span<const ConstBytes> pieces) override;
  bool allow_zero_copy(size_t from, Counters& counters) override {
    return inner().allow_zero_copy(from, counters);
  }
  IoResult send_zero_copy(std::span<const ConstBytes> pieces) override;
  uint64_t zero_copy_calls() const override { return inner().zero_copy_calls(); }
  uint64_t zero_copy_released() override { return inner().zero_copy_released(); }
  bool trim() override { return inner().trim(); }
  IoResult receive(Bytes buffer) override;
  IoResult receive_into(std::span<const Bytes> buffers) override;
  void settle() override { inner().settle(); }
  bool leave_engine() override { return inner().leave_engine(); }
  void shutdown_send() override;
  void abort() override;
  int release() override { return inner().release(); }
  InputQueue* input_queue() const override { return inner().input_queue(); }
  void set_key(void* key) override { inner().set_key(key); }

  /// For another stream over the same connection. Only the end may follow.
  using ForwardingStream::take_inner;
  const CapturedConnection& connection() const { return connection_; }

 private:
  IoResult note_sent(WallTime at, std::span<const ConstBytes> pieces, IoResult result);
  IoResult note_received(std::span<const Bytes> buffers, IoResult result);

  CapturedConnection connection_;
  bool end_noted_ = false;
};

}  // namespace diwarp::llp
