// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/datagram_options.h"

namespace diwarp::rnic {

/// The sources that a queue pair over datagrams listens to. Asked about each datagram before
/// anything else is done for it, so that strangers cost as little as they can.
class SourceFilters {
 public:
  /// Empty: everyone. Throws Error(invalid_argument) if a prefix is longer than its address, or a
  /// range of ports ends before it begins.
  explicit SourceFilters(std::span<const SourceFilter> sources = {});

  bool admit(const Address& from) const { return rules_.empty() || meets_rule(from); }

 private:
  /// A prefix as two words in network order.
  struct Rule {
    uint64_t network[2];
    uint64_t mask[2];
    uint32_t scope;  // 0: any
    AddressFamily family;
    uint16_t first_port;
    uint16_t last_port;
  };

  static Rule rule_of(const SourceFilter& source);
  bool meets_rule(const Address& from) const;

  std::vector<Rule> rules_;
};

}  // namespace diwarp::rnic
