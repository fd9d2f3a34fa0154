// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <system_error>
#include <utility>

#include "diwarp/error.h"
#include "diwarp/export.h"

namespace diwarp::detail {

/// True in a child of the process that made the handle (fork generation `born`). Such a handle is
/// dead: its object belongs to the parent.
DIWARP_EXPORT bool forked_since(unsigned long born);
DIWARP_EXPORT unsigned long fork_generation();
/// Throws Error with this code: device_gone or moved_from.
[[noreturn]] DIWARP_EXPORT void throw_dead_handle(Errc why);

/// The library's own way to the object behind a handle; each handle has it as a friend.
class HandleAccess;

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

  /// Why the handle is dead: moved_from, or device_gone in a forked child; no code where it is not.
  std::error_code fault() const noexcept {
    if (object_ && !forked_since(born_)) return {};
    return make_error_code(why_dead());
  }
  /// The object; null where the handle is dead.
  T* alive() const noexcept { return object_ && !forked_since(born_) ? object_.get() : nullptr; }
  /// The object; throws Error with the code of fault() where the handle is dead.
  const std::shared_ptr<T>& shared() const {
    if (!object_ || forked_since(born_)) throw_dead_handle(why_dead());
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
  Errc why_dead() const noexcept { return object_ ? Errc::device_gone : Errc::moved_from; }

  std::shared_ptr<T> object_;
  unsigned long born_ = 0;
};

}  // namespace diwarp::detail
