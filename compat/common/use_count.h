// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cerrno>

#include "compat/common/error.h"

namespace diwarp::compat {

/// How many objects rest on another one, which cannot be destroyed meanwhile.
class UseCount {
 public:
  bool any() const { return count_.load() != 0; }
  void check_none() const { refuse_if(any(), EBUSY); }

 private:
  friend class Use;
  std::atomic<int> count_{0};
};

/// One use of an object; none if it is made of null.
class Use {
 public:
  Use() = default;
  explicit Use(UseCount* of) : of_(of) {
    if (of_ != nullptr) ++of_->count_;
  }
  ~Use() {
    if (of_ != nullptr) --of_->count_;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  UseCount* of_ = nullptr;
};

}  // namespace diwarp::compat
