// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/context.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "fake_rdma_core/completion_queue.h"
#include "fake_rdma_core/exports.h"
#include "fake_rdma_core/queue_pair.h"
#include "fake_rdma_core/shared_receive_queue.h"
#include "fake_rdma_core/threads.h"

namespace fake {
namespace {

/// A port's number: each device has one.
constexpr int kPort = 1;

/// A connection's end as an RNIC tells of it: its own finding that a peer may not do what it asked
/// for, or anything else.
ibv_event_type fatal_type(const diwarp::AsyncEvent& event) {
  const bool own = event.terminate && !event.terminate->received;
  const bool protection =
      own && event.terminate->code.layer == 0 && event.terminate->code.type == 1;
  return protection ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_FATAL;
}

}  // namespace

Context::Context(Adapter& its_adapter)
    : verbs_context{},
      adapter(its_adapter),
      device(its_adapter.open()),
      channel(*device),
      events_(*device) {
  query_port = fake_op_query_port;
  sz = sizeof(verbs_context);
  context.device = &adapter;
  context.ops = operations();
  context.cmd_fd = -1;
  context.async_fd = async_events.fd();
  context.num_comp_vectors = 1;
  pthread_mutex_init(&context.mutex, nullptr);
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  thread_ = start_thread([this] { run(); });
  const std::lock_guard lock(adapter.mutex);
  adapter.contexts.push_back(this);
}

Context::~Context() {
  {
    const std::lock_guard lock(adapter.mutex);
    std::erase(adapter.contexts, this);
  }
  stop_.push(0);
  thread_.join();
  pthread_mutex_destroy(&context.mutex);
}

void Context::push(ibv_event_type type) {
  async_events.push({.element = {.port_num = kPort}, .event_type = type});
}
void Context::push(ibv_event_type type, ibv_cq* cq) {
  async_events.push({.element = {.cq = cq}, .event_type = type});
}
void Context::push(ibv_event_type type, ibv_qp* qp) {
  async_events.push({.element = {.qp = qp}, .event_type = type});
}
void Context::push(ibv_event_type type, ibv_srq* srq) {
  async_events.push({.element = {.srq = srq}, .event_type = type});
}

void Context::close_events() {
  async_events.close();
  const std::lock_guard lock(comp_channels_mutex_);
  for (CompChannel* const comp_channel : comp_channels_) comp_channel->events.close();
}

void Context::add(CompChannel& comp_channel) {
  const std::lock_guard lock(comp_channels_mutex_);
  comp_channels_.insert(&comp_channel);
}

void Context::remove(CompChannel& comp_channel) {
  const std::lock_guard lock(comp_channels_mutex_);
  comp_channels_.erase(&comp_channel);
}

void Context::push_to_all(ibv_event_type type) {
  const std::lock_guard lock(mutex_);
  switch (element_of(type)) {
    case EventElement::port:
      return push(type);
    case EventElement::cq:
      for (const auto& [serial, cq] : cqs_) push(type, cq);
      return;
    case EventElement::srq:
      for (const auto& [serial, srq] : srqs_) push(type, srq);
      return;
    case EventElement::qp:
      break;
  }
  const std::lock_guard tables(adapter.mutex);
  for (const auto& [number, qp] : adapter.queue_pairs)
    if (qp->context == &context) push(type, qp);
}

void Context::add(uint64_t serial, Cq& cq) {
  const std::lock_guard lock(mutex_);
  cqs_[serial] = &cq;
}
void Context::add(uint64_t serial, Srq& srq) {
  const std::lock_guard lock(mutex_);
  srqs_[serial] = &srq;
}
void Context::remove_cq(uint64_t serial) {
  const std::lock_guard lock(mutex_);
  cqs_.erase(serial);
}
void Context::remove_srq(uint64_t serial) {
  const std::lock_guard lock(mutex_);
  srqs_.erase(serial);
}

void Context::run() {
  std::array<pollfd, 3> watched = {pollfd{channel.descriptor(), POLLIN, 0},
                                   pollfd{events_.descriptor(), POLLIN, 0},
                                   pollfd{stop_.fd(), POLLIN, 0}};
  while (watched[2].revents == 0) {
    ::poll(watched.data(), watched.size(), -1);
    serve_completions();
    serve_events();
  }
}

void Context::serve_completions() {
  while (const auto event = channel.get_event(diwarp::Duration::zero())) {
    const std::lock_guard lock(mutex_);
    const auto found = cqs_.find(event->context);
    if (found != cqs_.end()) found->second->serve();
  }
}

void Context::serve_events() {
  while (const auto event = events_.get_event(diwarp::Duration::zero())) serve_event(*event);
}

void Context::serve_event(const diwarp::AsyncEvent& event) {
  switch (event.type) {
    case diwarp::AsyncEventType::qp_fatal:
      return push_of_queue_pair(fatal_type(event), event.qp_number);
    case diwarp::AsyncEventType::last_wqe_reached:
      return push_of_queue_pair(IBV_EVENT_QP_LAST_WQE_REACHED, event.qp_number);
    case diwarp::AsyncEventType::srq_limit_reached: {
      const std::lock_guard lock(mutex_);
      const auto found = srqs_.find(event.context);
      if (found != srqs_.end()) push(IBV_EVENT_SRQ_LIMIT_REACHED, found->second);
      return;
    }
    default:
      return;  // no adapter tells of it
  }
}

void Context::push_of_queue_pair(ibv_event_type type, uint32_t number) {
  const std::lock_guard lock(adapter.mutex);
  const auto found = adapter.queue_pairs.find(number);
  if (found == adapter.queue_pairs.end() || found->second->context != &context) return;
  push(type, found->second);
}

EventElement element_of(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return EventElement::cq;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return EventElement::srq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return EventElement::qp;
    default:
      return EventElement::port;
  }
}

Acknowledgements* acknowledgements_of(const ibv_async_event& event) {
  switch (element_of(event.event_type)) {
    case EventElement::cq:
      return &static_cast<Cq*>(event.element.cq)->async_acknowledgements;
    case EventElement::qp:
      return &static_cast<Qp*>(event.element.qp)->acknowledgements;
    case EventElement::srq:
      return &static_cast<Srq*>(event.element.srq)->acknowledgements;
    case EventElement::port:
      break;
  }
  return nullptr;
}

}  // namespace fake
