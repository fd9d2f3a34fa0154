// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/sge.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "compat/common/error.h"
#include "compat/verbs/memory.h"

namespace diwarp::compat {

// An SGE of libibverbs is one of the library's: lists need not be copied.
static_assert(sizeof(Sge) == sizeof(ibv_sge));
static_assert(offsetof(Sge, address) == offsetof(ibv_sge, addr));
static_assert(offsetof(Sge, length) == offsetof(ibv_sge, length));
static_assert(offsetof(Sge, lkey) == offsetof(ibv_sge, lkey));

/// The list of a request, for as long as this lives.
class Sges {
 public:
  /// `regions` are those of its protection domain; null for inline data, which lie where the list
  /// says, whatever its keys.
  Sges(const ibv_sge* list, int count, const OffsetRegions* regions)
      : first_(reinterpret_cast<const Sge*>(list)), count_(static_cast<size_t>(count)) {
    refuse_if(count < 0 || (list == nullptr && count > 0), EINVAL);
    if (regions == nullptr || regions->empty() || count == 0) return;
    copy_.assign(first_, first_ + count_);
    regions->translate(copy_);
    first_ = copy_.data();
  }

  SgeList list() const { return SgeList(first_, count_); }

 private:
  const Sge* first_;
  size_t count_;
  std::vector<Sge> copy_;  // where tagged offsets had to become addresses
};

}  // namespace diwarp::compat
