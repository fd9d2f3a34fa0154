// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "devices/open_device.h"
#include "diwarp/error.h"
#include "provider/device.h"
#include "support/catch.h"

using namespace diwarp;

namespace {

constexpr const char* kReason = "built without hardware devices";

/// The sentence that opening is refused with.
std::string refusal(std::string_view name, const DeviceOptions& options = {}) {
  try {
    devices::open(name, options);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::unsupported_operation);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("without the bridge a hardware device is refused with the reason") {
  CHECK(refusal("hw:siw0").find(kReason) != std::string::npos);
  const DeviceOptions required{.progress = Progress::manual, .hardware = Hardware::require};
  CHECK(refusal("127.0.0.1", required).find(kReason) != std::string::npos);
  CHECK(devices::hardware_libraries().refusal.find(kReason) != std::string::npos);
}

TEST_CASE("without the bridge software serves who prefers hardware") {
  const DeviceOptions preferred{.progress = Progress::manual, .hardware = Hardware::prefer};
  CHECK(devices::open("127.0.0.1", preferred)->address() == Address::parse("127.0.0.1"));
}

TEST_CASE("without the bridge the devices of this host are its addresses") {
  const auto all = devices::list();
  CHECK_FALSE(all.empty());
  CHECK(std::ranges::none_of(all, &DeviceInfo::hardware));
}
