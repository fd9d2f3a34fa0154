// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llp/backend.h"

/// An example of a backend, over Unix-domain sockets. It stands on the contracts of llp (the
/// headers of llp's own folder) and shares no code with the other backends. docs/development.md has
/// the recipe.
namespace diwarp::test {

/// Devices on loopback addresses, which reach each other within the host.
llp::BackendRow unix_row();

}  // namespace diwarp::test
