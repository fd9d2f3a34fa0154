// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks what the shared library shows to programs; everything else is hidden.
#define DIWARP_EXPORT __attribute__((visibility("default")))
