// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace diwarp::llp {

/// Whether the kernel lets this process use io_uring: old kernels lack it, containers often forbid
/// it. Asked once.
bool io_uring_available();

}  // namespace diwarp::llp
