// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "llp/tcp/tcp_stream.h"
#include "llp/uring/uring_queue.h"

namespace diwarp::llp {

/// A TCP connection whose bytes a ring brings while they are few; a stream that brings many is read
/// by system calls, which write where they are wanted. All else is as with TcpStream. May be made
/// and destroyed by any thread.
///
/// release() forgets what the ring has brought and receive() has not: the new owner of the
/// descriptor reads on after it.
class UringStream final : public TcpStream {
 public:
  static std::unique_ptr<UringStream> adopt(std::shared_ptr<UringQueue> queue,
                                            int connected_descriptor);
  /// As TcpStream has it.
  static std::unique_ptr<UringStream> over(std::shared_ptr<UringQueue> queue, UniqueFd connected,
                                           const Address& peer);
  ~UringStream() override;
  UringStream(const UringStream&) = delete;
  UringStream& operator=(const UringStream&) = delete;

  /// Never: a socket that the ring reads is not watched for what tells that memory is free again.
  bool allow_zero_copy(size_t from, Counters& counters) override;
  IoResult receive(Bytes buffer) override;
  IoResult receive_into(std::span<const Bytes> buffers) override;
  void settle() override;
  bool leave_engine() override;
  int error() override;
  void abort() override;
  int release() override;
  InputQueue* input_queue() const override;
  void set_key(void* key) override;

 private:
  UringStream(std::shared_ptr<UringQueue> queue, UniqueFd connected, const Address& peer);
  void stop_ring_input();
  size_t receive_pieces(Bytes buffer);
  size_t receive_front(Bytes buffer);
  IoResult receive_directly(Bytes buffer);

  std::unique_ptr<UringInput> input_;  // null: the descriptor is gone
  ConstBytes front_;                   // the rest of the oldest piece
  uint16_t front_buffer_ = 0;
  int broken_ = 0;  // the errno that receive() found, which the kernel tells but once
};

}  // namespace diwarp::llp
