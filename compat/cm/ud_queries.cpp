// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/ud_queries.h"

#include <algorithm>
#include <utility>

namespace diwarp::compat {
namespace {

/// Takes the queries for which `which` is true.
template <class Which>
std::vector<UdQueries::Query> take_if(std::unordered_map<uint64_t, UdQueries::Query>& from,
                                      Which which) {
  std::vector<UdQueries::Query> taken;
  std::erase_if(from, [&](auto& entry) {
    if (!which(entry.second)) return false;
    taken.push_back(std::move(entry.second));
    return true;
  });
  return taken;
}

}  // namespace

void UdQueries::begin(uint64_t number, uint64_t id, const Address& service,
                      std::vector<std::byte> request, TimePoint now) {
  queries_[number] = {.id = id,
                      .service = service,
                      .request = std::move(request),
                      .next = now + times_.first,
                      .last = now + times_.all,
                      .pause = times_.first};
}

std::optional<UdQueries::Query> UdQueries::take(uint64_t number) {
  auto node = queries_.extract(number);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

std::vector<UdQueries::Query> UdQueries::take_all_to(const Address& service) {
  return take_if(queries_, [&](const Query& query) { return query.service == service; });
}

void UdQueries::cancel(uint64_t id) {
  take_if(queries_, [id](const Query& query) { return query.id == id; });
}

std::vector<UdQueries::Query> UdQueries::due(TimePoint now) {
  std::vector<Query> found;
  for (auto& [number, query] : queries_) {
    if (query.next > now) continue;
    query.pause = std::min(query.pause * 2, times_.longest);
    query.next = now + query.pause;
    found.push_back(query);
  }
  return found;
}

std::vector<UdQueries::Query> UdQueries::take_expired(TimePoint now) {
  return take_if(queries_, [now](const Query& query) { return query.last <= now; });
}

std::optional<TimePoint> UdQueries::next() const {
  std::optional<TimePoint> soonest;
  for (const auto& [number, query] : queries_) {
    const TimePoint mine = std::min(query.next, query.last);
    if (!soonest || mine < *soonest) soonest = mine;
  }
  return soonest;
}

}  // namespace diwarp::compat
