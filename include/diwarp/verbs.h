// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The whole public interface of diwarp. Start with docs/architecture.md, or with the program in
/// README.md.

#include "diwarp/address.h"               // IWYU pragma: export
#include "diwarp/attributes.h"            // IWYU pragma: export
#include "diwarp/completion_queue.h"      // IWYU pragma: export
#include "diwarp/connect_options.h"       // IWYU pragma: export
#include "diwarp/connection.h"            // IWYU pragma: export
#include "diwarp/connection_event.h"      // IWYU pragma: export
#include "diwarp/connection_manager.h"    // IWYU pragma: export
#include "diwarp/datagram_options.h"      // IWYU pragma: export
#include "diwarp/device.h"                // IWYU pragma: export
#include "diwarp/device_options.h"        // IWYU pragma: export
#include "diwarp/error.h"                 // IWYU pragma: export
#include "diwarp/event_queue.h"           // IWYU pragma: export
#include "diwarp/flags.h"                 // IWYU pragma: export
#include "diwarp/log.h"                   // IWYU pragma: export
#include "diwarp/memory.h"                // IWYU pragma: export
#include "diwarp/queue_options.h"         // IWYU pragma: export
#include "diwarp/queue_pair.h"            // IWYU pragma: export
#include "diwarp/reliable_options.h"      // IWYU pragma: export
#include "diwarp/sge.h"                   // IWYU pragma: export
#include "diwarp/shared_receive_queue.h"  // IWYU pragma: export
#include "diwarp/stream_options.h"        // IWYU pragma: export
#include "diwarp/types.h"                 // IWYU pragma: export
#include "diwarp/validity_map.h"          // IWYU pragma: export
#include "diwarp/version.h"               // IWYU pragma: export
