// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include <diwarp/verbs.h>

#include "fake_rdma_core/devices.h"
#include "fake_rdma_core/fd_queue.h"
#include "fake_rdma_core/objects.h"

namespace fake {

class CompChannel;
class Cq;
class Srq;

/// An open device. Its thread moves completions from diwarp's completion queues into the fake's
/// own, which may overflow, and turns diwarp's events into asynchronous ones.
class Context : public verbs_context {
 public:
  explicit Context(Adapter& its_adapter);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Adapter& adapter;
  const std::shared_ptr<diwarp::Device> device;
  diwarp::CompletionChannel channel;
  Users users;
  FdQueue<ibv_async_event> async_events;

  /// Refuses with EIO where the device is gone.
  void check_present() const { refuse_if(adapter.gone, EIO); }

  void push(ibv_event_type type);  ///< of the port or the device
  void push(ibv_event_type type, ibv_cq* cq);
  void push(ibv_event_type type, ibv_qp* qp);
  void push(ibv_event_type type, ibv_srq* srq);
  /// For each object of the kind that the type is about.
  void push_to_all(ibv_event_type type);

  /// No events are to come: the device is gone. Takes no mutex that Adapter's order has.
  void close_events();

  void add(CompChannel& comp_channel);
  void remove(CompChannel& comp_channel);
  void add(uint64_t serial, Cq& cq);
  void add(uint64_t serial, Srq& srq);
  /// When these return, the thread does not use the object any more.
  void remove_cq(uint64_t serial);
  void remove_srq(uint64_t serial);

 private:
  void run();
  void serve_completions();
  void serve_events();
  void serve_event(const diwarp::AsyncEvent& event);
  void push_of_queue_pair(ibv_event_type type, uint32_t number);

  diwarp::EventQueue events_;
  std::mutex mutex_;  // of the tables; see Adapter for the order of locks
  std::unordered_map<uint64_t, Cq*> cqs_;
  std::unordered_map<uint64_t, Srq*> srqs_;
  std::mutex comp_channels_mutex_;  // of event queues alone the mutex is taken while it is held
  std::unordered_set<CompChannel*> comp_channels_;
  FdQueue<int> stop_;
  std::thread thread_;
};

inline Context& context_of(ibv_context* context) {
  return *static_cast<Context*>(verbs_get_ctx(context));
}

/// The kind of object that an event is about.
enum class EventElement : uint8_t { port, cq, qp, srq };
EventElement element_of(ibv_event_type type);
/// The acknowledgements of the object that the event is about; null: of none.
Acknowledgements* acknowledgements_of(const ibv_async_event& event);

/// A context that a program opened.
class OpenedContext : public Context, public Counted {
 public:
  using Context::Context;
};

}  // namespace fake
