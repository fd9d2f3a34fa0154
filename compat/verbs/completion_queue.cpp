// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/completion_queue.h"

#include <diwarp/attributes.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>

#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/common/log.h"
#include "compat/verbs/attributes.h"
#include "compat/verbs/functions.h"
#include "compat/verbs/queue_pair.h"
#include "compat/verbs/work_completions.h"

namespace diwarp::compat {
namespace {

uint32_t checked_entries(int entries, int vector) {
  refuse_if(entries < 1 || vector != 0, EINVAL);
  return static_cast<uint32_t>(entries);
}

/// Null, or one of the context. In the kernel each context has its objects for itself.
CompletionChannel* checked_channel(ibv_comp_channel* channel, const ibv_context* context) {
  refuse_if(channel != nullptr && channel->context != context, EINVAL);
  return static_cast<CompletionChannel*>(channel);
}

diwarp::CompletionQueue make_queue(Context& context, uint32_t entries, CompletionChannel* channel,
                                   uint64_t number) {
  const diwarp::Device& device = context.engine().device();
  if (channel == nullptr) return diwarp::CompletionQueue(device, entries);
  return diwarp::CompletionQueue(device, entries, channel->channel(), number);
}

}  // namespace

ChannelPlace::ChannelPlace(CompletionChannel* channel, Cq& cq)
    : channel_(channel),
      of_channel_(channel != nullptr ? &channel->users : nullptr),
      number_(channel != nullptr ? channel->add(cq) : 0) {}

void ChannelPlace::leave() {
  if (channel_ != nullptr) channel_->remove(number_);
  channel_ = nullptr;
}

Cq::Cq(Context& opened, int entries, void* program_context, ibv_comp_channel* its_channel,
       int vector)
    : ibv_cq_ex{},
      of_context_(&opened.users),
      place_(checked_channel(its_channel, opened.handle()), *this),
      queue_(make_queue(opened, checked_entries(entries, vector),
                        static_cast<CompletionChannel*>(its_channel), place_.number())) {
  context = opened.handle();
  channel = its_channel;
  cq_context = program_context;
  cqe = entries;
  ::pthread_mutex_init(&mutex, nullptr);
  ::pthread_cond_init(&cond, nullptr);
}

/// Waits until the program has acknowledged the events that it fetched.
Cq::~Cq() {
  place_.leave();
  acknowledgements.wait_for_all();
  ::pthread_cond_destroy(&cond);
  ::pthread_mutex_destroy(&mutex);
}

int Cq::poll(int count, ibv_wc* completions) {
  const std::lock_guard lock(mutex_);
  return poll_locked(count, completions);
}

int Cq::poll_locked(int count, ibv_wc* completions) {
  int done = any_added_ ? take_added(count, completions) : 0;
  while (done < count) {
    const size_t most = std::min(kBatch, static_cast<size_t>(count - done));
    const size_t found = queue_.poll(std::span(batch_).first(most));
    for (const WorkCompletion& one : std::span(batch_).first(found))
      if (hand_out(one, completions[done])) ++done;
    if (found < most) break;
  }
  return done;
}

bool Cq::start_poll() {
  mutex_.lock();
  if (next_poll()) return true;
  mutex_.unlock();
  return false;
}

bool Cq::next_poll() {
  if (poll_locked(1, &current_) == 0) return false;
  wr_id = current_.wr_id;
  status = current_.status;
  return true;
}

int Cq::take_added(int count, ibv_wc* completions) {
  const std::lock_guard lock(added_mutex_);
  int done = 0;
  for (; done < count && !added_.empty(); ++done) {
    completions[done] = added_.front();
    added_.pop_front();
  }
  any_added_ = !added_.empty();
  return done;
}

void Cq::add(std::span<const ibv_wc> completions) {
  if (completions.empty()) return;
  {
    const std::lock_guard lock(added_mutex_);
    added_.insert(added_.end(), completions.begin(), completions.end());
    any_added_ = true;
  }
  if (channel != nullptr && armed()) static_cast<CompletionChannel*>(channel)->on_news();
}

/// False for what the program shall not see, at least not now. The target of a Write is not told of
/// it.
bool Cq::hand_out(const WorkCompletion& completion, ibv_wc& target) {
  if (completion.opcode == WcOpcode::recv_write_record) return false;
  if (completion.source.port() != 0) sources_.note(completion.qp_number, completion.source);
  translate(completion, target);
  if (completion.status == WcStatus::success) [[likely]]
    return true;
  return Qp::tell_failure(*this, completion, target);
}

std::optional<Address> Cq::last_source(uint32_t queue_pair) const {
  return sources_.find(queue_pair);
}

/// The library's queue never overflows: what finds it full waits at its queue pair. So it need not
/// become larger, and the number is all that changes.
void Cq::resize(int entries) {
  const DeviceAttributes limits = context_of(context).engine().device().query();
  refuse_if(checked_entries(entries, 0) > limits.max_completion_entries, EINVAL);
  cqe = entries;
}

void Cq::arm(bool solicited_only) {
  armed_ = true;
  queue_.arm(solicited_only);
}

void Cq::count_fetched_event() {
  armed_ = false;
  acknowledgements.count_fetched();
}

Cq& cq_of(ibv_cq* cq) {
  refuse_if(cq == nullptr, EINVAL);
  return *static_cast<Cq*>(reinterpret_cast<ibv_cq_ex*>(cq));
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) {
  int done = 0;
  const int code = errno_value([&] { done = cq_of(cq).poll(count, completions); });
  return code == 0 ? done : -code;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  return errno_value([&] { cq_of(cq).arm(solicited_only != 0); });
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                                           ibv_comp_channel* channel, int vector) {
  return or_null([&] {
    auto* const made = new Cq(context_of(context), entries, cq_context, channel, vector);
    LiveObjects<Cq>::add(made);
    return made->handle();
  });
}

DIWARP_COMPAT_EXPORT int ibv_resize_cq(ibv_cq* cq, int entries) {
  return errno_value([&] { cq_of(cq).resize(entries); });
}

DIWARP_COMPAT_EXPORT int ibv_destroy_cq(ibv_cq* cq) {
  return errno_value([&] {
    Cq* const given = &cq_of(cq);
    LiveObjects<Cq>::take_unused(given);
    delete given;
  });
}

DIWARP_COMPAT_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  quietly([&] { cq_of(cq).acknowledgements.acknowledge(count); });
}

}  // extern "C"
