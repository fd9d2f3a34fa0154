// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/shared_receive_queue.h>
#include <infiniband/verbs.h>

#include "compat/common/use_count.h"
#include "compat/verbs/async_events.h"
#include "compat/verbs/memory.h"

namespace diwarp::compat {

class Srq : public ibv_srq {
 public:
  Srq(Pd& domain, void* program_context, const ibv_srq_attr& attributes);
  ~Srq();
  Srq(const Srq&) = delete;
  Srq& operator=(const Srq&) = delete;

  diwarp::SharedReceiveQueue& queue() { return queue_; }
  Pd& domain() const { return domain_; }
  AsyncEvents& events() { return events_; }
  void modify(const ibv_srq_attr& attributes, int mask);
  ibv_srq_attr query() const;

  UseCount users;

 private:
  Pd& domain_;
  const Use of_domain_;
  AsyncEvents events_;
  const uint64_t number_;  ///< in the engine's events
  diwarp::SharedReceiveQueue queue_;
};

/// Throws Refusal(EINVAL) for null.
Srq& srq_of(ibv_srq* srq);

}  // namespace diwarp::compat
