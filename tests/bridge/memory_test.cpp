// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <cerrno>

#include "bridge/datagrams.h"

/// Memory that the device cannot have, and what is then left of it.
namespace diwarp::bridge_test {

namespace {

using Catch::Matchers::ContainsSubstring;

/// A limit of locked memory while this lives.
class LockedMemoryLimit {
 public:
  explicit LockedMemoryLimit(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &before_) == 0);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
  }
  ~LockedMemoryLimit() { ::setrlimit(RLIMIT_MEMLOCK, &before_); }
  LockedMemoryLimit(const LockedMemoryLimit&) = delete;
  LockedMemoryLimit& operator=(const LockedMemoryLimit&) = delete;

 private:
  rlimit before_{};
};

/// The error of the next registration of 12,288 bytes, for which the device gives this errno.
Error registration_error(const ProtectionDomain& pd, int error) {
  const Pages pages(12288);
  fake().fail("ibv_reg_mr", 0, error);
  try {
    MemoryRegion(pd, pages.bytes());
  } catch (const Error& refused) {
    return refused;
  }
  return {std::error_code(), "it was registered"};
}

}  // namespace

TEST_CASE("Too little lockable memory is told with the limit, what was wanted, and what to do") {
  const Fresh fresh;
  const Device device = open_hardware();
  const ProtectionDomain pd(device);
  const LockedMemoryLimit limit(65536);
  const Error error = registration_error(pd, ENOMEM);
  CHECK(error.code() == std::errc::not_enough_memory);
  for (const char* const part : {"12288 bytes", "65536 bytes", "RLIMIT_MEMLOCK", "ulimit -l"})
    CHECK_THAT(error.what(), ContainsSubstring(part));
}

TEST_CASE("Memory that cannot be pinned is told to be so") {
  const Fresh fresh;
  const Device device = open_hardware();
  const ProtectionDomain pd(device);
  const Error error = registration_error(pd, EFAULT);
  CHECK(error.code() == std::errc::bad_address);
  CHECK_THAT(error.what(), ContainsSubstring("not mapped") && ContainsSubstring("12288 bytes"));
}

TEST_CASE("A registration that failed leaves nothing, and the next one serves both halves") {
  const Fresh fresh;
  Devices devices;
  const uint32_t before = devices.b.query().memory_regions;
  const int objects = fake().objects();
  Party a(devices.a);
  {
    const ProtectionDomain pd(devices.b);
    for (const int error : {ENOMEM, EFAULT, EIO})
      CHECK(registration_error(pd, error).code().value() == error);
    CHECK(devices.b.query().memory_regions == before);
  }
  Party b(devices.b, {.access = kOpen | Access::any_source});
  CHECK(fake().objects() > objects);
  join(a.qp, b.qp, devices.b);
  Datagrams from(devices.a, a);
  Datagrams to(devices.b, b);
  a.fill(0, 100, 1);
  REQUIRE_FALSE(a.write(0, 100, b.remote(0)));
  next_good(a.send_cq);
  check_record(from, to, 200);
}

TEST_CASE("A device that has no memory left cannot be opened, and nothing stays open") {
  const Fresh fresh;
  fake().fail("ibv_reg_mr", 0, ENOMEM);
  CHECK(refusal([] { open_hardware(); }) == std::errc::not_enough_memory);
  const Device device = open_hardware();
  CHECK(is_hardware(device));
}

}  // namespace diwarp::bridge_test
