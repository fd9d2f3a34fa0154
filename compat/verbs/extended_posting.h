// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace diwarp::compat {

class Qp;

/// The requests between ibv_wr_start() and ibv_wr_complete() of one queue pair. A thread holds them
/// for as long as that takes; others wait in start().
class ExtendedPosting {
 public:
  /// Fills in the functions that queue pairs of this type have. Throws Refusal(EOPNOTSUPP) where
  /// `operations` (IBV_QP_EX_WITH_*) has another.
  ExtendedPosting(Qp& qp, uint64_t operations);

  void start();
  /// Posts all, or none and returns the errno value that tells why.
  int complete();
  void abort();

  /// One more request, with the number and the flags that the queue pair has now.
  ibv_send_wr& add(ibv_wr_opcode opcode);
  /// Of the request that was added last; the first is UD's.
  void set_destination(ibv_ah* ah, uint32_t number, uint32_t q_key);
  void set_sges(std::span<const ibv_sge> sges);
  void set_inline(std::span<const ibv_data_buf> parts);
  void fail(int code) { code_ = code; }

 private:
  struct Pending {
    ibv_send_wr request{};
    std::vector<ibv_sge> sges;
    std::vector<std::byte> bytes;  // of an inline request
  };

  void post();

  Qp& qp_;
  std::mutex mutex_;  // from start() to complete() or abort(); guards what follows
  std::vector<Pending> pending_;
  size_t count_ = 0;  // of pending_ that are in use: their memory is kept
  int code_ = 0;
};

}  // namespace diwarp::compat
