// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/ud_requests_seen.h"

#include <utility>

namespace diwarp::compat {

UdRequestsSeen::Result UdRequestsSeen::note_request(const UdRequestKey& key, TimePoint now) {
  forget_old_answers(now);
  if (const auto found = requests_.find(key); found != requests_.end()) {
    if (found->second.empty()) return {Verdict::waiting};
    return {Verdict::answered, &found->second};
  }
  if (open_ >= limits_.max_open) return {Verdict::no_room};
  requests_.emplace(key, std::vector<std::byte>());
  ++open_;
  return {Verdict::fresh};
}

bool UdRequestsSeen::note_answer(const UdRequestKey& key, std::vector<std::byte> answer,
                                 TimePoint now) {
  const auto found = requests_.find(key);
  if (found == requests_.end() || !found->second.empty()) return false;
  found->second = std::move(answer);
  --open_;
  answered_.push_back({key, now});
  if (answered_.size() > limits_.max_answered) forget_oldest_answer();
  return true;
}

void UdRequestsSeen::forget_old_answers(TimePoint now) {
  while (!answered_.empty() && now - answered_.front().since >= limits_.answer_time)
    forget_oldest_answer();
}

void UdRequestsSeen::forget_oldest_answer() {
  requests_.erase(answered_.front().key);
  answered_.pop_front();
}

}  // namespace diwarp::compat
