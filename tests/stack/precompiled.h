// SPDX-License-Identifier: Apache-2.0
#pragma once

// The headers that most tests of this folder include, precompiled, as tests/headers.h is.
#include "headers.h"
#include "llp/tcp/tcp_stream.h"
#include "rnic/rc/rc_queue_pair.h"
#include "stack/support.h"
