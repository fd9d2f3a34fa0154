// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include <diwarp/verbs.h>

#include "fake_rdma_core/fd_queue.h"
#include "fake_rdma_core/objects.h"

namespace fake {

class CmId;

/// An event that nobody has fetched yet.
struct CmRecord {
  CmId* id = nullptr;  ///< CONNECT_REQUEST: the listener
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  int status = 0;  ///< an errno, negative; 0: none
  std::vector<std::byte> private_data = {};
  uint8_t initiator_depth = 0;
  uint8_t responder_resources = 0;
  std::optional<diwarp::CmId> request = {};  ///< CONNECT_REQUEST: of the peer
};

/// An event channel. Its thread turns diwarp's events into records.
class CmChannel : public rdma_event_channel, public Counted {
 public:
  CmChannel();
  ~CmChannel();

  Users users;
  diwarp::CmEventChannel inner;
  FdQueue<CmRecord> records;

  /// Ids are known by their serial number, which is the context of their diwarp::CmId.
  void add(uint64_t serial, CmId& id);
  /// No record of the id comes after this, and those that nobody fetched are gone.
  void remove(uint64_t serial, const CmId& id);

 private:
  void run();
  void dispatch(diwarp::CmEvent& event);

  std::mutex mutex_;
  std::unordered_map<uint64_t, CmId*> ids_;
  FdQueue<int> stop_;
  std::thread thread_;
};

/// An event that a program has fetched and not acknowledged.
class FetchedCmEvent : public rdma_cm_event, public Counted {
 public:
  explicit FetchedCmEvent(CmRecord&& record);
  /// Acknowledges it.
  ~FetchedCmEvent();

 private:
  CmId& counted_at_;
  const std::vector<std::byte> private_data_;
};

}  // namespace fake
