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
  if (!has_room(key.requester)) return {Verdict::no_room};
  size_t& of_host = open_of_host_[key.requester.with_port(0)];
  requests_.emplace(key, std::vector<std::byte>());
  ++of_host;
  ++open_;
  return {Verdict::fresh};
}

bool UdRequestsSeen::has_room(const Address& requester) const {
  const auto host = open_of_host_.find(requester.with_port(0));
  return open_ < limits_.max_open &&
         (host == open_of_host_.end() || host->second < limits_.max_open_of_host);
}

/// One of the requester's has its answer.
void UdRequestsSeen::close(const Address& requester) {
  --open_;
  const auto host = open_of_host_.find(requester.with_port(0));
  if (--host->second == 0) open_of_host_.erase(host);
}

bool UdRequestsSeen::note_answer(const UdRequestKey& key, std::vector<std::byte> answer,
                                 TimePoint now) {
  const auto found = requests_.find(key);
  if (found == requests_.end() || !found->second.empty()) return false;
  found->second = std::move(answer);
  close(key.requester);
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
