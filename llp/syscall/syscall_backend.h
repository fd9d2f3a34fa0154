// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llp/backend.h"

namespace diwarp::llp {

/// UDP and TCP, whose bytes are moved by system calls.
BackendRow syscall_row();

}  // namespace diwarp::llp
