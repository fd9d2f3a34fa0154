// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/injection.h"

#include <signal.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <system_error>

namespace fake {
namespace {

struct Point {
  int calls = 0;
  int until_failure = -1;  // calls that still succeed before the one that fails; -1: none fails
  int error = 0;
  int signal = 0;  // that each call raises; 0: none
};

std::mutex mutex;
std::array<Point, kFunctions.size()> points;

size_t row_of(std::string_view function) {
  size_t row = function_row(function);
  if (row == kFunctions.size()) row = function_row("ibv_" + std::string(function));
  if (row < kFunctions.size()) return row;
  std::fprintf(stderr, "fake rdma-core: there is no function %s\n", std::string(function).c_str());
  std::abort();
}

}  // namespace

int enter(size_t row) noexcept {
  const std::lock_guard lock(mutex);
  Point& point = points[row];
  ++point.calls;
  if (point.signal != 0) ::raise(point.signal);
  if (point.until_failure < 0) return 0;
  return point.until_failure-- == 0 ? point.error : 0;
}

void raise_in_calls(std::string_view function, int signal) {
  const std::lock_guard lock(mutex);
  points[row_of(function)].signal = signal;
}

void fail_call(std::string_view function, int after, int error) {
  const std::lock_guard lock(mutex);
  Point& point = points[row_of(function)];
  point.until_failure = after;
  point.error = error;
}

int calls(std::string_view function) {
  const std::lock_guard lock(mutex);
  return points[row_of(function)].calls;
}

void clear_calls() {
  const std::lock_guard lock(mutex);
  points.fill({});
}

int current_errno() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.error;
  } catch (const std::system_error& error) {
    return errno_of(error.code());
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (...) {
    return EINVAL;
  }
}

}  // namespace fake
