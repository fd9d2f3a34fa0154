// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/shared_receive_queue.h"

#include <algorithm>
#include <cerrno>

#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/common/log.h"
#include "compat/verbs/functions.h"
#include "compat/verbs/queue_pair_init.h"
#include "compat/verbs/receives.h"

namespace diwarp::compat {
namespace {

decltype(ibv_async_event::element) element_of(ibv_srq* srq) {
  decltype(ibv_async_event::element) element{};
  element.srq = srq;
  return element;
}

SharedReceiveQueueOptions options_of(const ibv_srq_attr& attributes, uint64_t number) {
  refuse_if(attributes.max_wr == 0, EINVAL);
  return {.max_wr = attributes.max_wr,
          .max_sge = std::max(attributes.max_sge, uint32_t{1}),
          .context = number};
}

}  // namespace

Srq::Srq(Pd& domain, void* program_context, const ibv_srq_attr& attributes)
    : ibv_srq{},
      domain_(domain),
      of_domain_(&domain.users),
      events_(context_of(domain.context), element_of(this)),
      number_(domain.engine().add_object(events_)),
      queue_([&] {
        try {
          return diwarp::SharedReceiveQueue(domain.domain(), options_of(attributes, number_));
        } catch (...) {
          domain.engine().remove_object(number_);
          throw;
        }
      }()) {
  context = domain.context;
  srq_context = program_context;
  pd = &domain;
}

Srq::~Srq() {
  domain_.engine().remove_object(number_);
  events_.end();
}

void Srq::modify(const ibv_srq_attr& attributes, int mask) {
  refuse_if((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0, EINVAL);
  if ((mask & IBV_SRQ_MAX_WR) != 0) unsupported("ibv_modify_srq of its size");
  if ((mask & IBV_SRQ_LIMIT) == 0) return;
  refuse_if(attributes.srq_limit > queue_.query().max_wr, EINVAL);
  queue_.set_limit(attributes.srq_limit);
}

ibv_srq_attr Srq::query() const {
  const SharedReceiveQueueAttributes known = queue_.query();
  return {
      .max_wr = granted_requests(known.max_wr), .max_sge = known.max_sge, .srq_limit = known.limit};
}

Srq& srq_of(ibv_srq* srq) {
  refuse_if(srq == nullptr, EINVAL);
  return *static_cast<Srq*>(srq);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  ibv_recv_wr* at = request;
  const int code = errno_value([&] {
    Srq& queue = srq_of(srq);
    post_receives(queue.queue(), queue.domain(), request, &at);
  });
  if (code != 0) *bad = at;
  return code;
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* init) {
  return or_null([&] {
    const bool basic =
        (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || init->srq_type == IBV_SRQT_BASIC;
    if (!basic) unsupported("ibv_create_srq_ex of another type than basic");
    refuse_if((init->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || init->pd == nullptr ||
                  init->pd->context != context,
              EINVAL);
    return ibv_create_srq(init->pd, reinterpret_cast<ibv_srq_init_attr*>(init));
  });
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  return or_null([&]() -> ibv_srq* {
    auto* const made = new Srq(pd_of(pd), init->srq_context, init->attr);
    LiveObjects<Srq>::add(made);
    const ibv_srq_attr granted = made->query();
    init->attr.max_wr = granted.max_wr;
    init->attr.max_sge = granted.max_sge;
    return made;
  });
}

DIWARP_COMPAT_EXPORT int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  return errno_value([&] { srq_of(srq).modify(*attributes, mask); });
}

DIWARP_COMPAT_EXPORT int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  return errno_value([&] { *attributes = srq_of(srq).query(); });
}

DIWARP_COMPAT_EXPORT int ibv_destroy_srq(ibv_srq* srq) {
  return errno_value([&] {
    Srq* const given = &srq_of(srq);
    LiveObjects<Srq>::take_unused(given);
    delete given;
  });
}

}  // extern "C"
