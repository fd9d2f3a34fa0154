// SPDX-License-Identifier: Apache-2.0

/// Marks a library of diwarp's that has a name of rdma-core's. This one has nothing else.
extern "C" __attribute__((visibility("default"))) int diwarp_drop_in;

int diwarp_drop_in = 1;
