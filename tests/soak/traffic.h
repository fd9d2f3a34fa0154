// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <diwarp/verbs.h>

#include "soak/borrowed.h"
#include "soak/posting.h"
#include "soak/process.h"

namespace soak {

/// The requests that are posted: random operations, some of which must be refused.
class Traffic {
 public:
  Traffic(Process& process, Posting& posting, Borrowed& borrowed)
      : process_(process), posting_(posting), borrowed_(borrowed) {}

  void post_some();

 private:
  void post_one(Line& line, uint32_t remote);
  Wrong pick_wrong(const Line& line);
  void post_message(Line& line, uint32_t remote, Operation operation, const Lent* about = nullptr,
                    uint64_t at = 0, uint64_t written = 0);
  void post_immediate(Line& line);
  void post_write(Line& line, uint32_t remote);
  void post_read(Line& line, uint32_t remote);
  void post_atomic(Line& line, uint32_t remote);
  void post_invalidate(Line& line, uint32_t remote);
  void post_refused(Line& line, uint32_t remote);
  void withdraw_one();

  Process& process_;
  Posting& posting_;
  Borrowed& borrowed_;
  std::array<std::byte, 128> refused_{};  // that requests name which are refused
};

}  // namespace soak
