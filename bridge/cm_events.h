// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "bridge/rdma_core.h"

namespace diwarp::bridge {

class CmEvents;
class CmHandler;

/// An id of librdmacm. Its end waits for events that are being copied, and no longer.
class CmEndpoint {
 public:
  CmEndpoint() = default;
  /// A new id. Throws Error.
  static CmEndpoint create(CmEvents& events, const RdmaCore& core);
  /// One that came with a connection request.
  CmEndpoint(CmEvents& events, const RdmaCore& core, rdma_cm_id* id)
      : events_(&events), core_(&core), id_(id) {}
  CmEndpoint(CmEndpoint&& other) noexcept;
  CmEndpoint& operator=(CmEndpoint&& other) noexcept;
  ~CmEndpoint() { reset(); }

  void reset();
  explicit operator bool() const { return id_ != nullptr; }
  rdma_cm_id* get() const { return id_; }
  void handle_with(const std::weak_ptr<CmHandler>& handler);

 private:
  CmEvents* events_ = nullptr;
  const RdmaCore* core_ = nullptr;
  rdma_cm_id* id_ = nullptr;
};

/// A copy of an event of librdmacm, which thus can be acknowledged before anybody handles it:
/// destroying an id waits for its acknowledgements.
struct CmNotice {
  rdma_cm_event_type type;
  int error = 0;            ///< an errno; 0: none
  CmEndpoint request = {};  ///< connect request: the new id
  std::vector<std::byte> private_data = {};
  uint16_t initiator_depth = 0;
  uint16_t responder_resources = 0;
};

/// Has the events of an id.
class CmHandler {
 public:
  virtual ~CmHandler() = default;
  /// With the device's mutex held.
  virtual void on_cm_event(CmNotice notice) = 0;
};

/// The channel of a device's connection manager ids, and who handles which. Any thread.
class CmEvents {
 public:
  explicit CmEvents(const RdmaCore& core);
  ~CmEvents();
  CmEvents(const CmEvents&) = delete;
  CmEvents& operator=(const CmEvents&) = delete;

  rdma_event_channel* channel() const { return channel_; }
  int descriptor() const { return channel_->fd; }

  void add(rdma_cm_id* id, const std::weak_ptr<CmHandler>& handler);
  void remove(rdma_cm_id* id);

  struct Delivery {
    std::shared_ptr<CmHandler> handler;
    CmNotice notice;
  };
  /// The next event; false where there is none. Its handler is null where nobody has the id any
  /// more. Throws std::bad_alloc, and the event is lost; `delivery` still ends what came with it.
  bool next(Delivery& delivery);

 private:
  std::shared_ptr<CmHandler> handler_of(rdma_cm_id* id);

  const RdmaCore& core_;
  rdma_event_channel* channel_;
  std::mutex mutex_;
  std::unordered_map<rdma_cm_id*, std::weak_ptr<CmHandler>> handlers_;  // guarded by mutex_
};

}  // namespace diwarp::bridge
