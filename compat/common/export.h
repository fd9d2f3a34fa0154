// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks what the version scripts may show.
#define DIWARP_COMPAT_EXPORT __attribute__((visibility("default")))
