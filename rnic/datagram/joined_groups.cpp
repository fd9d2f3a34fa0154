// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/joined_groups.h"

#include <algorithm>
#include <string>
#include <utility>

#include "diwarp/error.h"
#include "rnic/engine/engine.h"

namespace diwarp::rnic {

namespace {

std::string named(const Address& group, std::string_view interface) {
  const std::string where = interface.empty() ? "" : " on interface " + std::string(interface);
  return "Group " + group.to_string() + where;
}

[[noreturn]] void refuse(Errc code, const std::string& message) {
  throw Error(make_error_code(code), message);
}

}  // namespace

/// The group's own port, or the queue pair's.
Address JoinedGroups::with_port(const Address& group) const {
  // guard(groups): group.port() == 0 => true
  return group.port() == 0 ? group.with_port(link_.local_address().port()) : group;
}

void JoinedGroups::join(const Address& group, std::string_view interface) {
  if (type_ == QpType::rd)  // guard(no-groups-over-rd): condition => false
    refuse(Errc::unsupported_operation,
           "A queue pair of type rd cannot join groups: what is sent to a group is not reliable");
  const Address address = with_port(group);
  auto link = link_.open_group(address, interface);
  auto endpoint = std::make_unique<GroupInput>(receiver_, engine_, ++joined_, address, interface,
                                               std::move(link));
  const bool added = engine_.exclusively([&] {
    if (find_group(address, interface) != groups_.end()) return false;  // guard(groups)
    endpoint->attach();
    groups_.push_back(std::move(endpoint));
    return true;
  });
  if (!added) refuse(Errc::invalid_argument, named(address, interface) + " is joined already");
}

void JoinedGroups::leave(const Address& group, std::string_view interface) {
  std::unique_ptr<GroupInput> left;  // outlives the hold: it closes a descriptor
  engine_.exclusively([&] {
    const auto found = find_group(with_port(group), interface);
    if (found == groups_.end()) return;  // guard(groups)
    left = std::move(*found);
    groups_.erase(found);
    left->detach();
  });
  if (!left) refuse(Errc::invalid_argument, named(group, interface) + " was not joined");
}

JoinedGroups::Groups::iterator JoinedGroups::find_group(const Address& group,
                                                        std::string_view interface) {
  return std::ranges::find_if(groups_,
                              [&](const auto& joined) { return joined->is(group, interface); });
}

std::optional<Address> JoinedGroups::address_of(uint32_t number) const {
  const auto found =
      std::ranges::find(groups_, number, [](const auto& one) { return one->number(); });
  return found == groups_.end() ? std::nullopt : std::optional((*found)->address());
}

void JoinedGroups::detach() {
  for (const auto& group : groups_) group->detach();
}

}  // namespace diwarp::rnic
