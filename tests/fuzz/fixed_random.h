// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace diwarp::fuzz {

/// Begins the sequence anew that system_random() gives in a fuzzer with fixed_random.cpp among its
/// sources. To be called before each input, so that an input does the same whenever it is run:
/// STags, keys and first numbers come out of that sequence.
void restart_random();

}  // namespace diwarp::fuzz
