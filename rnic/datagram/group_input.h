// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "llp/datagram_link.h"
#include "rnic/datagram/datagram_receiver.h"
#include "rnic/engine/input_source.h"

namespace diwarp::rnic {

class Engine;

/// The receiving of datagrams to one group that a queue pair has joined. Sends nothing: datagrams
/// to a group leave over the queue pair's own link. Lives shorter than its queue pair.
class GroupInput final : public InputSource {
 public:
  /// `group` is the address with its port; `number` is the group's in its queue pair, above 0.
  GroupInput(DatagramReceiver& receiver, Engine& engine, uint32_t number, const Address& group,
             std::string_view interface, std::unique_ptr<llp::DatagramLink> link)
      : receiver_(receiver),
        engine_(engine),
        number_(number),
        group_(group),
        interface_(interface),
        link_(std::move(link)) {}

  bool is(const Address& group, std::string_view interface) const {
    return group_ == group && interface_ == interface;
  }

  uint32_t number() const { return number_; }
  const Address& address() const { return group_; }

  // --- With the baton.

  void attach();
  /// Before it is destroyed.
  void detach();
  size_t receive(Time now) override;

 private:
  DatagramReceiver& receiver_;
  Engine& engine_;
  const uint32_t number_;
  const Address group_;
  const std::string interface_;
  const std::unique_ptr<llp::DatagramLink> link_;
  uint64_t overflowed_ = 0;
};

}  // namespace diwarp::rnic
