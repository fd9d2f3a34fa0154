// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/intrusive_list.h"
#include "llp/datagram_link.h"
#include "llp/input_queue.h"

struct io_uring;
struct io_uring_buf_ring;
struct io_uring_cqe;
struct io_uring_sqe;

namespace diwarp::llp {

class UringInput;

struct UringOptions {
  /// Requests that one system call may submit, a power of two. More are submitted in parts
  /// (uring_sq_full).
  unsigned submissions = 64;
  /// Completions that may wait, a power of two; above, requests that bring input end and are made
  /// again (uring_cq_overflow).
  unsigned completions = 1024;
  /// Buffers of datagram links, each for a train of 64 KiB, a power of two. Few stay in the cache;
  /// where none is left, system calls receive the datagrams that wait (uring_no_buffers).
  unsigned datagram_buffers = 16;
  /// The same of streams, and their size in bytes. Bytes that are read from them are copied once
  /// more, so they are for short messages; a stream that brings more is read by system calls.
  unsigned stream_buffers = 64;
  size_t stream_buffer_bytes = 8192;
  /// Sockets that stay registered with the ring, which saves a look-up in each request; those above
  /// are named by their descriptors (uring_unregistered).
  unsigned files = 1024;
  /// Where uring_* are counted; null: nowhere.
  Counters* counters = nullptr;
};

/// Buffers from which the kernel takes one for what comes in. Guarded by the queue's mutex.
class UringBuffers {
 public:
  UringBuffers(unsigned count, size_t bytes, uint16_t group);
  ~UringBuffers();
  UringBuffers(const UringBuffers&) = delete;
  UringBuffers& operator=(const UringBuffers&) = delete;

  /// 0, or an errno.
  int attach(io_uring& ring);

  void give(std::span<const uint16_t> buffers);
  void taken() { --free_; }

  Bytes bytes(uint16_t buffer) const { return {memory_ + buffer * bytes_, bytes_}; }
  unsigned count() const { return count_; }
  unsigned free() const { return free_; }
  uint16_t group() const { return group_; }

  /// The content of a buffer that waits for its reader, and the buffer after it.
  struct Filled {
    uint32_t bytes = 0;
    uint16_t next = 0;
  };
  Filled& filled(uint16_t buffer) { return filled_[buffer]; }

 private:
  const unsigned count_;
  const size_t bytes_;
  const uint16_t group_;
  unsigned free_ = 0;
  size_t mapped_ = 0;
  std::byte* memory_ = nullptr;  // the buffers, and behind them the ring that offers them
  io_uring_buf_ring* ring_ = nullptr;
  std::vector<Filled> filled_;
};

/// A socket as requests name it.
struct UringFile {
  int number = -1;
  bool registered = false;  // then `number` is its place in the ring, else a descriptor
};

/// One ring of io_uring, which the links and streams of one engine share. Requests that bring input
/// stay with the kernel (multishot); the input that they bring waits in buffers until it is read.
/// Calls may come from any thread. A completion is processed by the thread that made the request,
/// which the kernel interrupts for it; when that thread has ended the request ends too, and is made
/// again.
class UringQueue final : public InputQueue,
                         public BufferOwner,
                         public std::enable_shared_from_this<UringQueue> {
 public:
  /// Null where the system does not allow it or lacks something: then `why_not` is a message.
  static std::shared_ptr<UringQueue> create(const UringOptions& options, std::string& why_not);
  ~UringQueue() override;

  int descriptor() const override;
  void gather(bool told) override;
  void* next_ready() override;
  Duration silence() override;
  void return_buffers(std::span<const uint16_t> datagram_buffers) override;

  /// Called, by any thread, when a link or stream that goes away has taken off the ring what others
  /// announce now: the descriptor does not tell of that.
  void on_ready(std::function<void()> callback);

  /// As sendmmsg(2), without blocking: the messages leave in order, and none after one that fails.
  /// 0: the kernel refused the requests, though system calls may succeed.
  ssize_t send(const UringFile& file, std::span<mmsghdr> messages);

  /// How long a request that the kernel refused waits until it is made again.
  static constexpr Duration kRetry = std::chrono::milliseconds(1);

 private:
  friend class UringInput;
  struct Close {
    void operator()(io_uring* ring) const;
  };

  explicit UringQueue(const UringOptions& options);
  std::string set_up();

  // With the mutex.
  void register_files();
  bool files_leave_at_once();
  bool register_file(int place, int fd);
  UringFile enlist(int fd);
  void dismiss(const UringFile& file);
  unsigned submissions() const;
  io_uring_sqe& request();
  unsigned submit();
  void cancel_and_wait(uint64_t owner);
  void reap();
  void reap_one_or_wait();
  void dispatch(const io_uring_cqe& completion);
  size_t send_part(const UringFile& file, std::span<mmsghdr> part);
  void nudge();
  void count(Counter counter);

  const UringOptions options_;
  std::mutex mutex_;
  std::unique_ptr<io_uring, Close> ring_;
  UringBuffers datagrams_;
  UringBuffers streams_;
  IntrusiveList<UringInput> ready_;
  IntrusiveList<UringInput> refused_;  // announce themselves with the next gather()
  std::vector<int> free_files_;
  std::function<void()> on_ready_;
  size_t sends_outstanding_ = 0;
  std::vector<int> sends_;  // how each ended; room for those of one submission
};

/// Whether the kernel lets this process use io_uring; why not; empty: it does. Asked
/// once.
const std::string& why_no_uring();

}  // namespace diwarp::llp
