// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>
#include <utility>

namespace diwarp::compat {

/// A value that is never destroyed: a program may exit with everything open, and threads may run
/// until its very end. A static one is made when it is first used; no constructor of the library
/// does anything when it is loaded.
template <class T>
class Immortal {
 public:
  template <class... Arguments>
  explicit Immortal(Arguments&&... arguments) {
    new (storage_) T(std::forward<Arguments>(arguments)...);
  }
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(storage_)); }
  T* operator->() { return &**this; }

 private:
  alignas(T) unsigned char storage_[sizeof(T)];
};

}  // namespace diwarp::compat
