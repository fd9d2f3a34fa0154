// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// A test program with syscalls.cpp in it reaches the system's sending and receiving calls through
/// functions of its own, which fail as they are told.
namespace diwarp::test {

/// What the calls of the whole process meet, whatever thread makes them. 0: no fault of this kind.
struct SyscallFaults {
  std::atomic<uint32_t> send_every{0};  ///< each so many-th sending call fails
  std::atomic<int> send_error{0};
  std::atomic<int> connected_error{0};     ///< what a call that names no destination fails with
  std::atomic<uint32_t> receive_every{0};  ///< each so many-th receiving call fails
  std::atomic<int> receive_error{0};
  std::atomic<int> train_error{0};        ///< what every message with a segment size fails with
  std::atomic<uint32_t> one_message{0};   ///< 1: sendmmsg and recvmmsg move one message only
  std::atomic<uint32_t> stream_bytes{0};  ///< a call on a TCP socket moves at most so many bytes
  std::atomic<int> udp_option_error{0};   ///< what every option of UDP's own fails with
  std::atomic<int> watch_error{0};        ///< what EPOLL_CTL_ADD fails with
  std::atomic<int> busy_poll_error{0};    ///< what SO_BUSY_POLL fails with
  std::atomic<int> zerocopy_error{0};     ///< what every send with MSG_ZEROCOPY fails with
  std::atomic<int> zerocopy_option_error{0};  ///< what SO_ZEROCOPY fails with
  std::atomic<uint32_t> hide_notices{0};      ///< 1: error queues look empty
  std::atomic<int> forced_buffer_error{0};    ///< what SO_RCVBUFFORCE and SO_SNDBUFFORCE fail with

  std::atomic<uint32_t> uring_every{0};  ///< each so many-th submission to io_uring fails

  std::atomic<uint64_t> injected{0};

  void reset();
};

SyscallFaults& syscall_faults();

/// All faults are gone at its end.
struct FaultsForNow {
  FaultsForNow() { syscall_faults().reset(); }
  ~FaultsForNow() { syscall_faults().reset(); }
  FaultsForNow(const FaultsForNow&) = delete;
  FaultsForNow& operator=(const FaultsForNow&) = delete;
  SyscallFaults* operator->() { return &syscall_faults(); }
};

}  // namespace diwarp::test
