// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "diwarp/export.h"

namespace diwarp::detail {

/// True in a child of the process that made the handle (fork generation `born`). Such a handle is
/// dead: its object belongs to the parent.
DIWARP_EXPORT bool forked_since(unsigned long born);
DIWARP_EXPORT unsigned long fork_generation();
/// Throws Error(device_gone).
[[noreturn]] DIWARP_EXPORT void throw_dead_handle();

/// Owner of an object behind a public handle: move-only, and inert in a forked child, where the
/// object is leaked on purpose, since its destructor would touch what the parent uses.
template <class T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(std::shared_ptr<T> object)
      : object_(std::move(object)), born_(fork_generation()) {}
  Handle(Handle&& other) noexcept = default;
  Handle& operator=(Handle&& other) noexcept {
    release();
    object_ = std::move(other.object_);
    born_ = other.born_;
    return *this;
  }
  ~Handle() { release(); }

  /// False where the handle was moved from, or is used in a forked child.
  bool alive() const { return object_ && !forked_since(born_); }
  /// The object; throws Error(device_gone) where the handle is not alive.
  const std::shared_ptr<T>& shared() const {
    if (!alive()) throw_dead_handle();
    return object_;
  }
  T& operator*() const { return *shared(); }
  T* operator->() const { return shared().get(); }

  void release() {
    if (object_ && forked_since(born_)) {
      new std::shared_ptr<T>(std::move(object_));
      object_ = nullptr;
    }
    object_.reset();
  }

 private:
  std::shared_ptr<T> object_;
  unsigned long born_ = 0;
};

}  // namespace diwarp::detail
