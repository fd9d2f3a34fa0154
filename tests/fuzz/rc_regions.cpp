// SPDX-License-Identifier: Apache-2.0
#include "fuzz/rc_regions.h"

namespace diwarp::fuzz {
namespace {

constexpr Access kOpen =
    Access::local_write | Access::remote_write | Access::remote_read | Access::remote_atomic;

}  // namespace

RcRegions::RcRegions(RcMemory& memory, const ProtectionDomain& pd, const ProtectionDomain& other_pd)
    : memory_(memory) {
  const Access lender = Access::local_write | Access::window_bind;
  open_.emplace(pd, memory.open.bytes(), kOpen | Access::window_bind, kBase);
  read_only_.emplace(pd, memory.read_only.bytes(), Access::remote_read | Access::remote_invalidate,
                     kBase);
  closed_.emplace(pd, memory.closed.bytes(), Access::local_write, kBase);
  foreign_.emplace(other_pd, memory.foreign.bytes(), kOpen, kBase);
  bound_.emplace(pd, memory.bound.bytes(), lender, kBase);
  inbox_.emplace(pd, memory.inbox.bytes(), Access::local_write, kBase);
  sink_.emplace(pd, memory.sink.bytes(), Access::local_write, kSinkBase);
  results_.emplace(pd, memory.results.bytes(), Access::local_write, kBase);
  outbox_.emplace(pd, memory.outbox.bytes(), Access::none, kBase);
  window_.emplace(pd);
  fast_.emplace(pd, kLent);
  keys_.inbox = inbox_->lkey();
  keys_.sink = sink_->lkey();
  keys_.results = results_->lkey();
  keys_.outbox = outbox_->lkey();
}

STag RcRegions::stag(unsigned which) const {
  switch (which & 7U) {
    case 3:
      return read_only_ ? read_only_->rkey() : 2;
    case 4:
      return closed_->rkey();
    case 5:
      return foreign_->rkey();
    case 6:
      return window_ ? window_->stag() : 3;
    case 7:
      return fast_ ? fast_->stag() : 4;
    default:
      return open_ ? open_->rkey() : 1;
  }
}

MemoryBinding RcRegions::window_binding(unsigned how) const {
  return {.stag = stag(6) ^ (how >> 7U),
          .region = (how & 4U) != 0 ? closed_->rkey()
                    : bound_        ? bound_->rkey()
                                    : 5,
          .address = memory_.bound.bytes().data() + kLentAt,
          .length = (how & 8U) != 0    ? 0U
                    : (how & 16U) != 0 ? 10
                                       : kLent,
          .access = Access::remote_write | Access::remote_read,
          .base = kBase};
}

MemoryBinding RcRegions::fast_binding(unsigned how) const {
  return {.stag = stag(7) ^ (how >> 7U),
          .address = memory_.fast.bytes().data() + kLentAt,
          .length = (how & 8U) != 0 ? kLent + 1 : kLent,
          .access = (how & 16U) != 0 ? Access::remote_read : kOpen,
          .base = kBase};
}

void RcRegions::deregister(Input& in) {
  switch (in.below(8)) {
    case 0:
      return open_.reset();
    case 1:
      return read_only_.reset();
    case 2:
      return bound_.reset();
    case 3:
      return inbox_.reset();
    case 4:
      return sink_.reset();
    case 5:
      return outbox_.reset();
    case 6:
      return window_.reset();
    default:
      return fast_.reset();
  }
}

void RcRegions::deregister_sinks() {
  sink_.reset();
  inbox_.reset();
}

}  // namespace diwarp::fuzz
