// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/rnic_thread.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <future>
#include <utility>

#include "support/catch.h"

namespace diwarp::rnic {
namespace {

/// struct sched_attr, as numbers: the slice is the fourth.
using Attributes = std::array<uint64_t, 6>;

Attributes attributes_of_caller() {
  Attributes attributes{};
  ::syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0);
  return attributes;
}

uint64_t slice_of_caller() { return attributes_of_caller()[3]; }

/// Whether the kernel lets a thread choose its slice: Linux 6.12 or newer.
bool slices_can_be_chosen() {
  return std::async(std::launch::async,
                    [] {
                      Attributes attributes = attributes_of_caller();
                      attributes[3] = 200'000;
                      ::syscall(SYS_sched_setattr, 0, attributes.data(), 0);
                      return slice_of_caller() == 200'000;
                    })
      .get();
}

}  // namespace

TEST_CASE("the RNIC thread has the shortest slices, where the kernel lets threads choose") {
  std::promise<uint64_t> slice;
  bool told = false;
  RnicThread thread;
  thread.start(
      [&] {
        if (!std::exchange(told, true)) slice.set_value(slice_of_caller());
      },
      -1);
  const uint64_t found = slice.get_future().get();
  thread.stop([] {});
  CHECK((found == 100'000 || !slices_can_be_chosen()));
}

}  // namespace diwarp::rnic
