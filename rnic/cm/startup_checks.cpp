// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/startup_checks.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "diwarp/error.h"
#include "mpa/startup.h"

namespace diwarp::rnic {

void check_private_data(std::span<const std::byte> data, bool enhanced) {
  const size_t most = mpa::max_private_data(enhanced ? 2 : 1);
  if (data.size() <= most) return;
  throw Error(make_error_code(Errc::invalid_argument),
              "Private data is at most " + std::to_string(most) + " bytes with revision " +
                  (enhanced ? "2" : "1") + " of MPA, not " + std::to_string(data.size()) +
                  "; send more in a first message");
}

void check_depths(uint16_t ord, uint16_t ird) {
  if (std::max(ord, ird) <= mpa::kMaxDepth) return;
  throw Error(make_error_code(Errc::invalid_argument),
              "ord and ird are at most " + std::to_string(mpa::kMaxDepth) + ", not " +
                  std::to_string(std::max(ord, ird)));
}

Duration bounded_timeout(Duration timeout) {
  constexpr Duration kYear = std::chrono::hours(24 * 365);
  return timeout < Duration::zero() ? kYear : std::min(timeout, kYear);
}

std::unique_ptr<llp::Stream> unbroken(std::unique_ptr<llp::Stream> stream) {
  return stream && stream->error() == 0 ? std::move(stream) : nullptr;
}

}  // namespace diwarp::rnic
