// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/shared_receive_queue.h"

#include <cerrno>

#include "fake_rdma_core/capabilities.h"
#include "fake_rdma_core/limits.h"
#include "fake_rdma_core/requests.h"

namespace fake {
namespace {

diwarp::SharedReceiveQueueOptions checked_options(const ibv_srq_attr& attributes, uint64_t serial) {
  refuse_if(!able(Ability::srq), EOPNOTSUPP);
  refuse_if(attributes.max_wr < 1 || attributes.max_wr > kMaxWr, EINVAL);
  refuse_if(attributes.max_sge < 1 || attributes.max_sge > kMaxSge, EINVAL);
  return {.max_wr = attributes.max_wr, .max_sge = attributes.max_sge, .context = serial};
}

}  // namespace

Srq::Srq(Pd& its_pd, const ibv_srq_init_attr& init)
    : ibv_srq{},
      serial(next_serial()),
      inner(its_pd.inner, checked_options(init.attr, serial)),
      max_wr_(init.attr.max_wr),
      max_sge_(init.attr.max_sge),
      use_(&its_pd.users) {
  context = its_pd.context;
  srq_context = init.srq_context;
  pd = &its_pd;
  handle = static_cast<uint32_t>(serial);
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
  context_of(context).add(serial, *this);
}

Srq::~Srq() {
  Context& own = context_of(context);
  own.remove_srq(serial);
  own.async_events.purge([this](const ibv_async_event& event) {
    return element_of(event.event_type) == EventElement::srq && event.element.srq == this;
  });
  acknowledgements.wait();
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
}

int Srq::post_recv(ibv_recv_wr* first, ibv_recv_wr** bad) {
  return post_each(first, bad, [this](const ibv_recv_wr& request) { return post_one(request); });
}

int Srq::post_one(const ibv_recv_wr& request) {
  const std::lock_guard lock(mutex_);
  if (inner.query().posted >= max_wr_) return ENOMEM;
  const int error = post_receive(inner, context_of(context).adapter, request, max_sge_);
  if (error == 0) hand_limit_over();
  return error;
}

void Srq::modify(const ibv_srq_attr& attributes, int mask) {
  refuse_if((mask & ~IBV_SRQ_LIMIT) != 0, EINVAL);
  refuse_if(attributes.srq_limit > max_wr_, EINVAL);
  if ((mask & IBV_SRQ_LIMIT) == 0) return;
  const std::lock_guard lock(mutex_);
  inner.set_limit(0);
  waiting_limit_ = attributes.srq_limit;
  hand_limit_over();
}

void Srq::hand_limit_over() {
  if (waiting_limit_ == 0 || inner.query().posted < waiting_limit_) return;
  inner.set_limit(waiting_limit_);
  waiting_limit_ = 0;
}

void Srq::take_note_of_receive() {
  const std::lock_guard lock(mutex_);
  if (waiting_limit_ == 0) return;
  waiting_limit_ = 0;
  context_of(context).push(IBV_EVENT_SRQ_LIMIT_REACHED, this);
}

ibv_srq_attr Srq::query() {
  const std::lock_guard lock(mutex_);
  const uint32_t limit = waiting_limit_ != 0 ? waiting_limit_ : inner.query().limit;
  return {.max_wr = max_wr_, .max_sge = max_sge_, .srq_limit = limit};
}

}  // namespace fake
