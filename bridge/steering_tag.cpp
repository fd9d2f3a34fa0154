// SPDX-License-Identifier: Apache-2.0
#include "bridge/steering_tag.h"

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

void SteeringTag::will_be_bound(const MemoryBinding& binding) {
  const std::lock_guard lock(mutex_);
  region_ = binding.region;
}

void SteeringTag::bound(const MemoryBinding& binding) {
  const std::lock_guard lock(mutex_);
  region_ = binding.region;
  attributes_ = {.stag = binding.stag,
                 .valid = binding.length != 0,
                 .base = binding.base,
                 .length = binding.length,
                 .access = binding.access};
}

void SteeringTag::unbind_from(STag region) {
  {
    const std::lock_guard lock(mutex_);
    if (region_ != region) return;
  }
  invalidate();
}

void SteeringTag::end_if_of(STag region) {
  const std::lock_guard lock(mutex_);
  if (region_ == region) window_.reset();
}

void SteeringTag::invalidate() {
  const std::lock_guard lock(mutex_);
  attributes_.valid = false;
  attributes_.length = 0;
}

}  // namespace diwarp::bridge
