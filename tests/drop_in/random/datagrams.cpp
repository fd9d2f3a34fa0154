// SPDX-License-Identifier: Apache-2.0
// Address handles and groups.
#include <arpa/inet.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "drop_in/random/loopback.h"
#include "drop_in/random/world.h"

namespace random_calls {
namespace {

constexpr size_t kMostHandles = 8;

ibv_ah_attr some_attributes(World& world, ibv_context* context) {
  Randomness& random = world.random;
  ibv_ah_attr made{};
  if (const auto own = loopback_gid(context)) {
    made.grh.dgid = own->gid;
    made.grh.sgid_index = own->index;
  }
  made.is_global = random.chance(90) ? 1 : 0;
  made.port_num = random.chance(90) ? 1 : 2;
  if (random.chance(10)) made.dlid = 5;
  if (random.chance(10)) made.grh.sgid_index = 200;
  if (random.chance(10)) made.grh.dgid = {};
  return made;
}

bool keep(World& world, ibv_ah* made) {
  if (made_or_errno(made)) world.handles.push_back(made);
  return made != nullptr;
}

bool create_handle(World& world) {
  if (world.domains.empty() || world.handles.size() >= kMostHandles) return false;
  ibv_pd* const domain = world.random.one_of(world.domains);
  ibv_ah_attr attributes = some_attributes(world, domain->context);
  return keep(world, ibv_create_ah(domain, &attributes));
}

/// A message that came from this host, or one that never came.
bool create_handle_from_message(World& world) {
  if (world.domains.empty() || world.handles.size() >= kMostHandles) return false;
  Randomness& random = world.random;
  ibv_pd* const domain = random.one_of(world.domains);
  ibv_wc completion{};
  completion.wc_flags = random.chance(90) ? unsigned{IBV_WC_GRH} : 0U;
  ibv_grh header{};
  if (const auto own = loopback_gid(domain->context)) header.sgid = header.dgid = own->gid;
  if (random.chance(10)) header.dgid = {};
  if (random.chance(10)) header.sgid = {};
  header.version_tclass_flow = htonl(static_cast<uint32_t>(random.number()));
  const auto port = random.one_of<uint8_t>({1, 1, 1, 0});
  if (random.chance(70))
    return keep(world, ibv_create_ah_from_wc(domain, &completion, &header, port));
  ibv_ah_attr attributes{};
  return succeeded_or_errno(
      ibv_init_ah_from_wc(domain->context, port, &completion, &header, &attributes));
}

bool destroy_handle(World& world) {
  if (world.handles.empty()) return false;
  ibv_ah* const handle = world.random.one_of(world.handles);
  require(ibv_destroy_ah(handle) == 0, "an address handle stays");
  remove(world.handles, handle);
  require(ibv_destroy_ah(handle) == EINVAL, "an address handle was destroyed twice");
  return true;
}

constexpr std::array kGroups{"::ffff:239.255.77.1", "::ffff:239.255.77.2", "::ffff:239.255.77.3",
                             "ff15::77"};

ibv_gid group_of(const char* text) {
  ibv_gid made{};
  ::inet_pton(AF_INET6, text, made.raw);
  return made;
}

/// A group, or what is none. Nothing is sent to it.
ibv_gid some_group(Randomness& random) {
  return group_of(
      random.one_of({kGroups[0], kGroups[1], kGroups[2], kGroups[3], "::ffff:192.0.2.1", "::"}));
}

bool attach(World& world) {
  const auto all = world.all_queue_pairs();
  if (all.empty()) return false;
  const ibv_gid group = some_group(world.random);
  return succeeded(ibv_attach_mcast(world.random.one_of(all), &group, 0));
}

bool detach(World& world) {
  const auto all = world.all_queue_pairs();
  if (all.empty()) return false;
  const ibv_gid group = some_group(world.random);
  return succeeded(
      ibv_detach_mcast(world.random.one_of(all), world.random.chance(95) ? &group : nullptr, 0));
}

constexpr std::array kCalls{
    Call{"ibv_create_ah", 8, create_handle},
    Call{"ibv_create_ah_from_wc", 5, create_handle_from_message},
    Call{"ibv_destroy_ah", 6, destroy_handle},
    Call{"ibv_attach_mcast", 3, attach},
    Call{"ibv_detach_mcast", 3, detach},
};

}  // namespace

void leave_groups(ibv_qp* queue_pair) {
  for (const char* const text : kGroups) {
    const ibv_gid group = group_of(text);
    ibv_detach_mcast(queue_pair, &group, 0);
  }
}

std::span<const Call> datagram_calls() { return kCalls; }

}  // namespace random_calls
