// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/completion_queue.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "fake_rdma_core/capabilities.h"
#include "fake_rdma_core/limits.h"
#include "fake_rdma_core/queue_pair.h"

namespace fake {
namespace {

/// Entries of diwarp's completion queue. It is emptied all the time, and when it is full nothing is
/// lost.
constexpr uint32_t kInnerEntries = 256;

int checked_entries(int entries) {
  refuse_if(entries < 1 || entries > kMaxCqe, EINVAL);
  return entries;
}

Users* users_of(ibv_comp_channel* channel) {
  return channel == nullptr ? nullptr : &static_cast<CompChannel*>(channel)->users;
}

}  // namespace

CompChannel::CompChannel(Context& its_context)
    : ibv_comp_channel{.context = &its_context.context, .fd = -1, .refcnt = 0},
      use_(&its_context.users) {
  fd = events.fd();
  its_context.add(*this);
}

CompChannel::~CompChannel() { context_of(context).remove(*this); }

Cq::Cq(Context& its_context, int entries, void* its_cq_context, ibv_comp_channel* its_channel)
    : ibv_cq{},
      serial(next_serial()),
      inner(*its_context.device, kInnerEntries, its_context.channel, serial),
      context_use_(&its_context.users),
      channel_use_(users_of(its_channel)) {
  context = &its_context.context;
  channel = its_channel;
  cq_context = its_cq_context;
  cqe = checked_entries(entries);
  handle = static_cast<uint32_t>(serial);
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
  its_context.add(serial, *this);
  inner.arm();
}

Cq::~Cq() {
  Context& own = context_of(context);
  own.remove_cq(serial);
  if (channel != nullptr) {
    auto& events = static_cast<CompChannel*>(channel)->events;
    events.purge([this](const ibv_cq* of) { return of == this; });
  }
  own.async_events.purge([this](const ibv_async_event& event) {
    return element_of(event.event_type) == EventElement::cq && event.element.cq == this;
  });
  comp_acknowledgements.wait();
  async_acknowledgements.wait();
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
}

int Cq::poll(int count, ibv_wc* completions) {
  refuse_if(count < 0, EINVAL);
  const std::lock_guard lock(mutex_);
  drain_locked();
  int taken = 0;
  while (taken < count && !entries_.empty()) {
    const CqEntry& entry = entries_.front();
    completions[taken++] = entry.wc;
    entry.qp->retire(entry);
    entries_.pop_front();
  }
  return taken;
}

void Cq::arm(bool solicited_only) {
  const std::lock_guard lock(mutex_);
  if (armed_ != Armed::any) armed_ = solicited_only ? Armed::solicited : Armed::any;
}

void Cq::resize(int entries) {
  refuse_if(!able(Ability::resize), ENOSYS);
  const int checked = checked_entries(entries);
  const std::lock_guard lock(mutex_);
  refuse_if(static_cast<size_t>(checked) < entries_.size(), EINVAL);
  cqe = checked;
}

void Cq::drain() {
  const std::lock_guard lock(mutex_);
  drain_locked();
}

void Cq::serve() {
  const std::lock_guard lock(mutex_);
  drain_locked();
  inner.arm();
  drain_locked();  // what came before it was armed
}

void Cq::purge(const Qp& qp) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const CqEntry& entry) { return entry.qp == &qp; });
}

void Cq::drain_locked() {
  std::array<diwarp::WorkCompletion, 16> completions;
  size_t count = 0;
  do {
    count = inner.poll(completions);
    for (size_t i = 0; i < count; ++i) take_over(completions[i]);
  } while (count == completions.size());
}

void Cq::take_over(const diwarp::WorkCompletion& completion) {
  Adapter& adapter = context_of(context).adapter;
  const std::lock_guard lock(adapter.mutex);  // the queue pair stays while it is held
  const auto found = adapter.queue_pairs.find(completion.qp_number);
  if (found == adapter.queue_pairs.end()) return;
  if (const auto entry = found->second->complete(completion)) push(*entry);
}

void Cq::push(const CqEntry& entry) {
  if (dead_ || entries_.size() >= static_cast<size_t>(cqe)) return overflow();
  entries_.push_back(entry);
  const bool wanted = armed_ == Armed::any || (armed_ == Armed::solicited && entry.solicited);
  if (!wanted) return;
  armed_ = Armed::no;
  if (channel != nullptr) static_cast<CompChannel*>(channel)->events.push(this);
}

void Cq::overflow() {
  if (!dead_) context_of(context).push(IBV_EVENT_CQ_ERR, this);
  dead_ = true;
}

}  // namespace fake
