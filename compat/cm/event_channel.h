// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/connection_manager.h>
#include <rdma/rdma_cma.h>

#include <memory>
#include <optional>
#include <vector>

#include "compat/cm/request_pace.h"
#include "compat/cm/ud_request.h"
#include "compat/common/fetch_queue.h"
#include "compat/common/process.h"

namespace diwarp::compat {

class Id;

/// An event that waits to be fetched.
struct PendingCmEvent {
  Id* about = nullptr;  ///< connect_request: the listening id
  rdma_cm_event event{};
  std::vector<std::byte> private_data;
  std::optional<diwarp::CmId> request;  ///< connect_request: what to answer with
  ibv_device* device = nullptr;         ///< connect_request: where it came
  std::optional<UdRequest> ud_request;  ///< connect_request to a UD service: in its place

  void fetched();
};

/// An event as programs get it, with what it points to.
struct CmEventBlock : rdma_cm_event {
  Id* counted = nullptr;  ///< whose events it counts among
  std::vector<std::byte> data;
};

/// Where events of ids go. The program holds it, and each id that is on it: one that is destroyed
/// before its ids is closed, and goes with the last of them.
class EventChannel : public rdma_event_channel {
 public:
  /// One that the program holds, until release().
  static std::shared_ptr<EventChannel> make();
  /// Throws Refusal: EINVAL where the program does not hold it, ENODEV in a forked child.
  static std::shared_ptr<EventChannel> shared(rdma_event_channel* channel);
  /// Ends all waits on it. False where the program does not hold it.
  static bool release(rdma_event_channel* channel);

  EventChannel() : rdma_event_channel{} { fd = events.descriptor(); }

  const Process process;
  FetchQueue<PendingCmEvent> events;
  RequestPace pace;
};

}  // namespace diwarp::compat
