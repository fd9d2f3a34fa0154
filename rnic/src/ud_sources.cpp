// SPDX-License-Identifier: Apache-2.0
#include "rnic/ud_sources.h"

namespace diwarp::rnic {

Source* SourceTable::find_or_add(const Address& address, uint32_t incarnation, Time now) {
  const SourceKey key{address, incarnation};
  if (latest_ == nullptr || !(latest_->key == key)) {
    const auto found = sources_.find(key);
    if (found != sources_.end()) {
      latest_ = found->second.get();
    } else {
      forget_silent(now);
      if (sources_.size() >= max_sources_ && !forget_oldest()) return nullptr;
      auto source = std::make_unique<Source>();
      source->key = key;
      latest_ = source.get();
      sources_.emplace(key, std::move(source));
    }
    by_age_.remove(*latest_);
    by_age_.push_back(*latest_);
  }
  latest_->last_heard = now;
  return latest_;
}

void SourceTable::forget_silent(Time now) {
  while (Source* oldest = by_age_.front()) {
    if (oldest->in_use() || now - oldest->last_heard < kForgetAfter) return;
    forget(*oldest);
  }
}

bool SourceTable::forget_oldest() {
  for (Source* source = by_age_.front(); source != nullptr; source = by_age_.next(*source)) {
    if (source->in_use()) continue;
    forget(*source);
    return true;
  }
  return false;
}

void SourceTable::forget(Source& source) {
  if (latest_ == &source) latest_ = nullptr;
  const SourceKey key = source.key;
  sources_.erase(key);
}

void SourceTable::clear() {
  latest_ = nullptr;
  sources_.clear();
}

}  // namespace diwarp::rnic
