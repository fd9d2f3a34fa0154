// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "diwarp/attributes.h"
#include "diwarp/detail/handle.h"
#include "diwarp/device.h"

namespace diwarp {

namespace provider {
class EventQueue;
}

/// Where a device tells what no work request asked for: connections that ended, limits that were
/// reached. A device may have several; each gets every event from its creation on, the newest 4,096
/// until they are fetched.
class DIWARP_EXPORT EventQueue {
 public:
  explicit EventQueue(const Device& device);

  /// The next event; nothing after `timeout` (negative: waits for ever). With Progress::manual it
  /// steps the engine while it waits.
  std::optional<AsyncEvent> get_event(Duration timeout);

  /// A descriptor that polls readable while events wait. Do not read from it.
  int descriptor() const;

 private:
  friend class detail::HandleAccess;
  detail::Handle<provider::EventQueue> impl_;
};

}  // namespace diwarp
