// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>

#include "base/intrusive_list.h"
#include "llp/uring/uring_queue.h"

namespace diwarp::llp {

/// The input of one socket: the request that brings it, and what it brought. While no request is
/// armed, whatever waits in the socket is read by system calls; the owner arms again when there is
/// nothing more.
class UringInput : public ListNode<> {
 public:
  enum class Kind : uint8_t { datagrams, stream };

  /// A buffer that was filled.
  struct Piece {
    uint16_t buffer = 0;
    Bytes bytes;
  };

  /// Arms at once. The socket must outlive it.
  UringInput(std::shared_ptr<UringQueue> queue, int fd, Kind kind);
  /// Cancels the request and waits until the kernel has released it.
  ~UringInput();
  UringInput(const UringInput&) = delete;
  UringInput& operator=(const UringInput&) = delete;

  /// No request is under way until arm(): bytes that came can be taken, bytes that come stay in the
  /// socket.
  void settle();
  /// The same for good, which the destructor begins with.
  void stop();

  /// Takes up to `pieces.size()` from the front, oldest first; returns how many.
  size_t take(std::span<Piece> pieces);
  /// Gives a stream's piece back.
  void give_back(uint16_t buffer);

  /// Whether a request brings, or has brought, the next input; else the socket has it.
  bool brings_next();
  void arm();
  /// Announces input that is left: a piece, bytes that no request brings, or something of the
  /// owner's.
  void announce_rest(bool of_owner = false);

  /// Sends messages from the socket, as UringQueue::send() does.
  ssize_t send(std::span<mmsghdr> messages) { return queue_->send(file_, messages); }

  /// The errno that ended the stream; 0: none did.
  int error();
  bool has_pieces();
  void set_key(void* key);

  const std::shared_ptr<UringQueue>& queue() const { return queue_; }

  /// How a message lies in a datagram's buffer: the kernel's header, these two, the bytes.
  static constexpr size_t kNameBytes = sizeof(sockaddr_storage);
  /// `piece` as recvmsg would have told it; returns the bytes. They may be none.
  static Bytes unpack(const Piece& piece, msghdr& header);

 private:
  friend class UringQueue;
  enum class State : uint8_t { idle, armed, ending };

  void end_request();
  void completed(const io_uring_cqe& completion);
  void ended(int result);
  void append(uint16_t buffer, uint32_t bytes);
  void announce();
  void put_off();
  void start();
  void cancel();
  bool greedy() const;

  const std::shared_ptr<UringQueue> queue_;
  UringBuffers& buffers_;
  const Kind kind_;
  // Guarded by the queue's mutex.
  UringFile file_;
  State state_ = State::idle;
  bool has_ended_ = false;  // a request, and none was made since
  void* key_ = nullptr;
  int error_ = 0;
  uint32_t pieces_ = 0;
  uint16_t first_ = 0;
  uint16_t last_ = 0;
};

}  // namespace diwarp::llp
