// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <diwarp/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compat/cm/ud_requests_seen.h"

namespace diwarp::compat {

/// The requests of this process to UD services that have no answer yet, and when each is repeated
/// or given up. Protocol alone, as UdRequestsSeen.
class UdQueries {
 public:
  struct Times {
    Duration first =
        std::chrono::milliseconds(200);  ///< until the first repetition; then twice as long
    Duration longest = std::chrono::milliseconds(3200);
    Duration all = std::chrono::seconds(30);  ///< then nobody answers
  };
  struct Query {
    uint64_t id = 0;  ///< whose query it is
    Address service;
    std::vector<std::byte> request;
    TimePoint next{};
    TimePoint last{};
    Duration pause{};
  };

  UdQueries() = default;
  explicit UdQueries(const Times& times) : times_(times) {}

  /// `number` is the request's.
  void begin(uint64_t number, uint64_t id, const Address& service, std::vector<std::byte> request,
             TimePoint now);
  /// Takes the query that an answer with this number is for.
  std::optional<Query> take(uint64_t number);
  /// Takes those to a service where nobody listens.
  std::vector<Query> take_all_to(const Address& service);
  void cancel(uint64_t id);

  /// What is to be sent again now.
  std::vector<Query> due(TimePoint now);
  /// Takes those that are given up.
  std::vector<Query> take_expired(TimePoint now);
  /// When one of the last two has something next; nothing: never.
  std::optional<TimePoint> next() const;

 private:
  Times times_;
  std::unordered_map<uint64_t, Query> queries_;
};

}  // namespace diwarp::compat
