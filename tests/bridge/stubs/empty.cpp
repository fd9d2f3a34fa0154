// SPDX-License-Identifier: Apache-2.0

/// A library without any function of rdma-core's.
extern "C" __attribute__((visibility("default"))) int unrelated;

int unrelated = 1;
