// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/group_input.h"

#include <algorithm>
#include <string>

#include "diwarp/error.h"
#include "rnic/datagram/datagram_queue_pair.h"
#include "rnic/engine/engine.h"

namespace diwarp::rnic {

void GroupInput::attach() {
  link_->on_degradation([this](const llp::Degradation& what) {
    if (!what.sending) queue_pair_.count_degradation(what);  // a group's link sends nothing
  });
  engine_.attach_link(*this, *link_);
  if (link_->descriptor() < 0) link_->on_ready([engine = &engine_] { engine->wake(); });
}

void GroupInput::detach() {
  link_->set_key(nullptr);
  engine_.detach(*this);
}

size_t GroupInput::receive(Time now) {
  llp::ReceiveBatch& batch = engine_.receive_batch();
  const size_t count = link_->receive(batch);
  if (count == 0) return 0;
  for (llp::IncomingDatagram datagram : batch.datagrams()) {
    datagram.via = number_;
    queue_pair_.handle(datagram, now);
  }
  const uint64_t overflowed = link_->overflowed();
  if (overflowed != overflowed_) {  // guard(overflow): condition => false
    engine_.counters().add(Counter::rx_overflow, overflowed - overflowed_);
    overflowed_ = overflowed;
  }
  queue_pair_.after_receive(now);
  return count;
}

namespace {

std::string named(const Address& group, std::string_view interface) {
  const std::string where = interface.empty() ? "" : " on interface " + std::string(interface);
  return "Group " + group.host() + where;
}

[[noreturn]] void refuse(Errc code, const std::string& message) {
  throw Error(make_error_code(code), message);
}

}  // namespace

// The queue pair's groups.

void DatagramQueuePair::join(const Address& group, std::string_view interface) {
  if (type() == QpType::rd)  // guard(no-groups-over-rd): condition => false
    refuse(Errc::unsupported_operation,
           "A queue pair of type rd cannot join groups: what is sent to a group is not reliable");
  const Address address = group.with_port(0);
  auto link = link_->open_group(address, interface);
  auto endpoint = std::make_unique<GroupInput>(*this, engine(), ++groups_joined_, address,
                                               interface, std::move(link));
  const bool added = engine().exclusively([&] {
    if (find_group(address, interface) != groups_.end()) return false;  // guard(groups)
    endpoint->attach();
    groups_.push_back(std::move(endpoint));
    return true;
  });
  if (!added) refuse(Errc::invalid_argument, named(address, interface) + " is joined already");
}

void DatagramQueuePair::leave(const Address& group, std::string_view interface) {
  std::unique_ptr<GroupInput> left;  // outlives the hold: it closes a descriptor
  engine().exclusively([&] {
    const auto found = find_group(group.with_port(0), interface);
    if (found == groups_.end()) return;  // guard(groups)
    left = std::move(*found);
    groups_.erase(found);
    left->detach();
  });
  if (!left) refuse(Errc::invalid_argument, named(group, interface) + " was not joined");
}

DatagramQueuePair::Groups::iterator DatagramQueuePair::find_group(const Address& group,
                                                                  std::string_view interface) {
  return std::ranges::find_if(groups_,
                              [&](const auto& joined) { return joined->is(group, interface); });
}

}  // namespace diwarp::rnic
