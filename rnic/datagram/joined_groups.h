// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "diwarp/types.h"
#include "llp/datagram_link.h"
#include "rnic/datagram/group_input.h"

namespace diwarp::rnic {

/// The groups that a queue pair over datagrams has joined. Each has a link and a number of its own;
/// no number is used again. The queue pair owns it.
class JoinedGroups {
 public:
  /// `receiver`, `type` and `link`: the queue pair, its type, and its own link.
  JoinedGroups(DatagramReceiver& receiver, QpType type, Engine& engine, llp::DatagramLink& link)
      : receiver_(receiver), engine_(engine), link_(link), type_(type) {}

  /// As the public ones. Any thread, without the baton.
  void join(const Address& group, std::string_view interface);
  void leave(const Address& group, std::string_view interface);

  // --- With the baton.

  /// The address of the group with this number; nothing where it was left.
  std::optional<Address> address_of(uint32_t number) const;
  /// Before it is destroyed.
  void detach();

 private:
  using Groups = std::vector<std::unique_ptr<GroupInput>>;
  Address with_port(const Address& group) const;
  Groups::iterator find_group(const Address& group, std::string_view interface);

  DatagramReceiver& receiver_;
  Engine& engine_;
  llp::DatagramLink& link_;
  const QpType type_;
  std::atomic<uint32_t> joined_{0};  // ever
  Groups groups_;
};

}  // namespace diwarp::rnic
