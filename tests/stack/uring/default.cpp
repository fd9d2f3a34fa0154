// SPDX-License-Identifier: Apache-2.0
// In this program devices that do not say otherwise use io_uring.
#include "rnic/device.h"

diwarp::IoBackend diwarp::rnic::automatic_io() { return IoBackend::uring; }
