// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

/// The way between public handles and the objects behind them. It is not installed: verbs and tests
/// have it, programs do not.
namespace diwarp {

namespace detail {

/// The friend of every handle.
class HandleAccess {
 public:
  template <class Handle>
  static const auto& object(const Handle& handle) {
    return handle.impl_.shared();
  }
  template <class Ref>
  static const auto& named(const Ref& ref) {
    return ref.impl_;
  }
  template <class Handle, class Object>
  static Handle make(std::shared_ptr<Object> object) {
    return Handle(std::move(object));
  }
};

}  // namespace detail

/// The object behind a handle. Throws Error(device_gone) or (moved_from) where the handle is dead.
template <class Handle>
const auto& impl_of(const Handle& handle) {
  return detail::HandleAccess::object(handle);
}

/// The object that a reference in QueuePairInit names; null where it names none.
template <class Ref>
const auto& named_by(const Ref& ref) {
  return detail::HandleAccess::named(ref);
}

/// A handle of an object.
template <class Handle, class Object>
Handle handle_of(std::shared_ptr<Object> object) {
  return detail::HandleAccess::make<Handle>(std::move(object));
}

}  // namespace diwarp
