// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <mutex>
#include <unordered_set>

#include "compat/common/error.h"
#include "compat/common/immortal.h"

namespace diwarp::compat {

/// The objects of a type that programs hold, so that one which is destroyed twice, or from two
/// threads, is refused the second time.
template <class Object>
class LiveObjects {
 public:
  static void add(Object* object) {
    const std::lock_guard lock(*mutex());
    objects()->insert(object);
  }
  /// Throws Refusal(EINVAL) for one that no program holds; it is not looked at then.
  static void check(Object* object) {
    const std::lock_guard lock(*mutex());
    refuse_if(objects()->count(object) == 0, EINVAL);
  }
  /// One of which `matches` is true; null where there is none.
  template <class Matches>
  static Object* find(Matches matches) {
    const std::lock_guard lock(*mutex());
    for (Object* object : *objects())
      if (matches(*object)) return object;
    return nullptr;
  }
  /// The object is the caller's from then on. Throws Refusal(EINVAL) where it is none, or another
  /// thread has taken it; it is not looked at then.
  static void take(Object* object) {
    take(object, [](Object&) {});
  }
  /// The same; it stays where `check` throws.
  template <class Check>
  static void take(Object* object, Check check) {
    const std::lock_guard lock(*mutex());
    refuse_if(objects()->count(object) == 0, EINVAL);
    check(*object);
    objects()->erase(object);
  }
  /// The same for an object that nothing may rest on.
  static void take_unused(Object* object) {
    take(object, [](Object& one) { one.users.check_none(); });
  }

 private:
  static Immortal<std::mutex>& mutex() {
    static Immortal<std::mutex> one;
    return one;
  }
  static Immortal<std::unordered_set<Object*>>& objects() {
    static Immortal<std::unordered_set<Object*>> all;
    return all;
  }
};

}  // namespace diwarp::compat
