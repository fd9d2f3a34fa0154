// SPDX-License-Identifier: Apache-2.0
#include "bridge/steering_tag.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "bridge/protection_domain.h"
#include "bridge/refuse.h"

namespace diwarp::bridge {
namespace {

int end_window(ibv_mw* window) { return ibv_dealloc_mw(window); }

}  // namespace

SteeringTag::SteeringTag(std::shared_ptr<ProtectionDomain> domain)
    : domain_(std::move(domain)),
      window_(ibv_alloc_mw(domain_->get(), IBV_MW_TYPE_2), {end_window}) {
  if (!window_)
    refuse_errno(errno, "The device " + domain_->device().name() + " has no memory window left");
  stag_ = window_->rkey;
  attributes_.stag = stag_;
  bindings_.reserve(kMostBindings);
  domain_->add(*this);
}

SteeringTag::~SteeringTag() {
  const auto none_is_bound = domain_->keep_bindable();
  domain_->remove(*this);
  window_.reset();
}

SteeringTagAttributes SteeringTag::query() const {
  const std::lock_guard lock(mutex_);
  return attributes_;
}

bool SteeringTag::has_binding_left() const {
  const std::lock_guard lock(mutex_);
  return bindings_.size() < kMostBindings;
}

uint64_t SteeringTag::add_binding(const MemoryBinding& binding) {
  const std::lock_guard lock(mutex_);
  if (bindings_.size() == kMostBindings) return 0;
  bindings_.push_back(
      {.number = ++last_binding_, .stag = binding.stag, .region = binding.region, .over = false});
  return last_binding_;
}

void SteeringTag::end_binding(const MemoryBinding& binding, uint64_t number, BindingEnd end) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(bindings_, number, &Binding::number);
  if (found == bindings_.end()) return;
  const bool over = found->over;
  bindings_.erase(found);
  if (end == BindingEnd::unknown && region_ == 0 && !over) region_ = binding.region;
  // Another queue pair's completion of a newer one may have been polled before.
  if (end != BindingEnd::bound || number < newest_bound_) return;
  newest_bound_ = number;
  region_ = over ? 0 : binding.region;
  attributes_ = {.stag = binding.stag};
  if (over || binding.length == 0) return;
  attributes_.valid = true;
  attributes_.base = binding.base;
  attributes_.length = binding.length;
  attributes_.access = binding.access;
}

void SteeringTag::invalidate(STag stag, bool by_peer) {
  const std::lock_guard lock(mutex_);
  // The owner's request ends after the bindings that were posted before it.
  if (by_peer)
    for (Binding& binding : bindings_) binding.over = binding.over || binding.stag == stag;
  if (attributes_.stag != stag) return;
  attributes_.valid = false;
  attributes_.length = 0;
  region_ = 0;
}

void SteeringTag::unbind_from(STag region) {
  const std::lock_guard lock(mutex_);
  for (Binding& binding : bindings_) binding.over = binding.over || binding.region == region;
  if (region_ != region) return;
  attributes_.valid = false;
  attributes_.length = 0;
  region_ = 0;
}

void SteeringTag::end_if_of(STag region) {
  const std::lock_guard lock(mutex_);
  const bool may_be = std::ranges::find(bindings_, region, &Binding::region) != bindings_.end();
  if (region_ == region || may_be) window_.reset();
}

}  // namespace diwarp::bridge
