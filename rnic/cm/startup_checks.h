// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/clock.h"
#include "llp/stream.h"

/// The checks of start-ups on both sides.
namespace diwarp::rnic {

/// Throws Error(invalid_argument) where it is longer than MPA can carry, with enhanced data or
/// without.
void check_private_data(std::span<const std::byte> data, bool enhanced);

/// Throws Error(invalid_argument) where a depth is more than MPA can tell (RFC 6581 section 9.1).
void check_depths(uint16_t ord, uint16_t ird);

/// A timeout that timers can have. Negative ones, which mean for ever, become a year.
Duration bounded_timeout(Duration timeout);

/// The stream; null where the peer has broken it after its last byte of the start-up.
std::unique_ptr<llp::Stream> unbroken(std::unique_ptr<llp::Stream> stream);

}  // namespace diwarp::rnic
