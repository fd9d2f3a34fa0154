// SPDX-License-Identifier: Apache-2.0
#include "compat/common/export.h"

/// Marks a library of diwarp's that has a name of rdma-core's: the bridge to hardware devices does
/// not take it for one.
extern "C" DIWARP_COMPAT_EXPORT int diwarp_drop_in;

int diwarp_drop_in = 1;
