// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace diwarp::test {

/// Runs `body` on a thread in a network namespace of its own, whose loopback is up. False, and a
/// line that the case is skipped, when that is not permitted.
bool in_network_namespace(const std::function<void()>& body);

/// Sets an interface's MTU in the namespace of the calling thread.
bool set_mtu(const char* interface, int mtu);

}  // namespace diwarp::test
