// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "llp/datagram_link.h"
#include "rnic/datagram/group_input.h"

namespace diwarp::rnic {

/// The groups that a queue pair over datagrams has joined. Each has a link and a number of its own;
/// no number is used again. The queue pair owns it.
class JoinedGroups {
 public:
  /// `link`: the queue pair's own.
  JoinedGroups(DatagramQueuePair& queue_pair, Engine& engine, llp::DatagramLink& link)
      : queue_pair_(queue_pair), engine_(engine), link_(link) {}

  /// As the public ones. Any thread, without the baton.
  void join(const Address& group, std::string_view interface);
  void leave(const Address& group, std::string_view interface);

  /// Before it is destroyed. With the baton.
  void detach();

 private:
  using Groups = std::vector<std::unique_ptr<GroupInput>>;
  Groups::iterator find_group(const Address& group, std::string_view interface);

  DatagramQueuePair& queue_pair_;
  Engine& engine_;
  llp::DatagramLink& link_;
  Groups groups_;
  std::atomic<uint32_t> joined_{0};  // ever
};

}  // namespace diwarp::rnic
