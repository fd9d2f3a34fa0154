// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "diwarp/error.h"

namespace diwarp::provider {

/// Throws Error(invalid_argument): `what` was made by another provider.
[[noreturn]] inline void refuse_foreign(const char* what) {
  throw Error(make_error_code(Errc::invalid_argument),
              std::string("The ") + what +
                  " belongs to a device of another kind: make all objects of one Device");
}

/// Throws Error(invalid_argument): the two are of different protection domains.
[[noreturn]] inline void refuse_other_domain() {
  throw Error(make_error_code(Errc::invalid_argument),
              "The shared receive queue belongs to another protection domain than the queue pair: "
              "make both in one");
}

/// An object of the contract as the class that a provider made it of. Throws
/// Error(invalid_argument) where another provider made it.
template <class Own, class Contract>
Own& own(Contract& object, const char* what) {
  if (auto* const found = dynamic_cast<Own*>(&object)) return *found;
  refuse_foreign(what);
}

/// The same of a pointer. Null stays null.
template <class Own, class Contract>
std::shared_ptr<Own> own_pointer(const std::shared_ptr<Contract>& object, const char* what) {
  if (!object) return nullptr;
  return {object, &own<Own>(*object, what)};
}

}  // namespace diwarp::provider
