// SPDX-License-Identifier: Apache-2.0
#pragma once

// DIWARP_ADDRESS_SANITIZER: this is built with it. GCC says so by a macro, Clang by a feature.
#if defined(__SANITIZE_ADDRESS__)
#define DIWARP_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DIWARP_ADDRESS_SANITIZER
#endif
#endif
