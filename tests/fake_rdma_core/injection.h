// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cxxabi.h>

#include <cerrno>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fake_rdma_core/failure.h"
#include "fake_rdma_core/functions.h"

/// Counts the calls of each function, and has chosen ones fail.
namespace fake {

/// Counts a call, and raises its signal. The errno that it is to fail with; 0: none.
int enter(size_t row) noexcept;

/// See control.h. These end the process where there is no function of that name.
void fail_call(std::string_view function, int after, int error);
void raise_in_calls(std::string_view function, int signal);
int calls(std::string_view function);
void clear_calls();

/// What a function that returns Result returns for this error.
template <class Result>
Result failed(OnError how, int error) noexcept {
  errno = error;
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else if constexpr (!std::is_void_v<Result>) {
    if (how == OnError::code) return static_cast<Result>(error);
    return static_cast<Result>(how == OnError::minus_one ? -1 : 0);
  }
}

/// Runs the body of an exported function, unless the call is to fail. No exception leaves it, but
/// for the end of a thread that was cancelled while it waited in the call.
template <class Body>
auto guarded(FunctionName function, Body&& body) {
  using Result = std::invoke_result_t<Body>;
  const OnError how = kFunctions[function.row].on_error;
  const int injected = enter(function.row);
  if (injected != 0 && how != OnError::nothing) return failed<Result>(how, injected);
  try {
    return std::forward<Body>(body)();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return failed<Result>(how, current_errno());
  }
}

}  // namespace fake
