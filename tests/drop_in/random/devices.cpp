// SPDX-License-Identifier: Apache-2.0
// Devices, contexts, and what they say of themselves.
#include <algorithm>
#include <array>
#include <cerrno>

#include "drop_in/random/world.h"

namespace random_calls {
namespace {

constexpr size_t kMostContexts = 3;

bool open_device(World& world) {
  if (world.contexts.size() >= kMostContexts) return false;
  int count = 0;
  ibv_device** const list = ibv_get_device_list(world.random.chance(50) ? &count : nullptr);
  require(list != nullptr && list[0] != nullptr, "there is no device");
  size_t devices = 0;
  while (list[devices] != nullptr) ++devices;
  ibv_context* const opened = ibv_open_device(list[world.random.below(devices)]);
  ibv_free_device_list(list);
  if (!made_or_errno(opened)) return false;
  set_nonblocking(opened->async_fd);
  world.contexts.push_back(opened);
  return true;
}

bool is_used(const World& world, const ibv_context* context) {
  const auto of_context = [context](const auto* object) { return object->context == context; };
  return std::ranges::any_of(world.domains, of_context) ||
         std::ranges::any_of(world.channels, of_context) ||
         std::ranges::any_of(world.queues, of_context);
}

/// A context that is closed with objects left open stays until the program ends.
bool close_device(World& world) {
  if (world.contexts.empty()) return false;
  ibv_context* const context = world.random.one_of(world.contexts);
  if (is_used(world, context)) return false;
  require(ibv_close_device(context) == 0, "a context could not be closed");
  remove(world.contexts, context);
  require(ibv_close_device(context) == -1 && errno == EINVAL, "a context was closed twice");
  return true;
}

bool query_device(World& world) {
  if (world.contexts.empty()) return false;
  ibv_context* const context = world.random.one_of(world.contexts);
  ibv_device_attr known{};
  if (world.random.chance(50)) return succeeded(ibv_query_device(context, &known));
  ibv_device_attr_ex more{};
  const ibv_query_device_ex_input input{.comp_mask = world.random.one_of({0U, 0U, 1U, ~0U})};
  return succeeded(ibv_query_device_ex(context, world.random.chance(30) ? nullptr : &input, &more));
}

bool query_port(World& world) {
  if (world.contexts.empty()) return false;
  ibv_port_attr known{};
  const auto port = world.random.one_of<uint8_t>({1, 1, 1, 0, 2, 255});
  const bool answered =
      succeeded(ibv_query_port(world.random.one_of(world.contexts), port, &known));
  require(answered == (port == 1), "there is one port, number 1");
  return answered;
}

bool query_gid(World& world) {
  if (world.contexts.empty()) return false;
  ibv_context* const context = world.random.one_of(world.contexts);
  const auto port = world.random.one_of<uint8_t>({1, 1, 1, 0});
  const int index = world.random.one_of({0, 0, 1, 2, -1, 77});
  std::array<ibv_gid_entry, 4> entries{};
  switch (world.random.below(4)) {
    case 0:
      return succeeded_or_errno(ibv_query_gid(context, port, index, &entries[0].gid));
    case 1:
      return succeeded(ibv_query_gid_ex(context, port, static_cast<uint32_t>(index), entries.data(),
                                        world.random.one_of({0U, 0U, 1U})));
    default: {
      const auto count = ibv_query_gid_table(context, entries.data(), entries.size(),
                                             world.random.one_of({0U, 0U, 1U}));
      return count >= 0 || succeeded(static_cast<int>(-count));
    }
  }
}

bool query_pkey(World& world) {
  if (world.contexts.empty()) return false;
  ibv_context* const context = world.random.one_of(world.contexts);
  const auto port = world.random.one_of<uint8_t>({1, 1, 0});
  __be16 pkey = 0;
  if (!succeeded_or_errno(ibv_query_pkey(context, port, world.random.one_of({0, 1, -1}), &pkey)))
    return false;
  return succeeded_or_errno(ibv_get_pkey_index(context, port, pkey));
}

/// The numbers stay within what each enumeration's type can hold.
bool names(World& world) {
  const size_t value = world.random.below(32);
  const std::array texts{ibv_wc_status_str(static_cast<ibv_wc_status>(value)),
                         ibv_event_type_str(static_cast<ibv_event_type>(value)),
                         ibv_port_state_str(static_cast<ibv_port_state>(value % 8)),
                         ibv_node_type_str(static_cast<ibv_node_type>(value % 8)),
                         rdma_event_str(static_cast<rdma_cm_event_type>(value % 16))};
  require(std::ranges::count(texts, nullptr) == 0, "a value has no name");
  const auto rate = static_cast<ibv_rate>(value);
  return ibv_rate_to_mult(rate) >= -1 && ibv_rate_to_mbps(rate) >= -1;
}

/// What is refused by name, or does nothing.
bool unsupported(World& world) {
  if (world.contexts.empty()) return false;
  ibv_context* const context = world.random.one_of(world.contexts);
  ibv_alloc_dm_attr memory{};
  memory.length = 4096;
  require(ibv_alloc_dm(context, &memory) == nullptr, "there is device memory");
  ibv_xrcd_init_attr domain{};
  require(ibv_open_xrcd(context, &domain) == nullptr, "there are XRC domains");
  ibv_values_ex clock{};
  require(ibv_query_rt_values_ex(context, &clock) != 0, "there is a clock");
  return ibv_fork_init() == 0 && ibv_is_fork_initialized() == IBV_FORK_UNNEEDED;
}

bool get_async_event(World& world) {
  if (world.contexts.empty()) return false;
  ibv_async_event event{};
  if (!succeeded_or_errno(ibv_get_async_event(world.random.one_of(world.contexts), &event)))
    return false;
  world.async_events.push_back(event);
  if (world.random.chance(80)) acknowledge_async_events(world);
  return true;
}

bool get_devices(World& world) {
  int count = 0;
  ibv_context** const list = rdma_get_devices(world.random.chance(70) ? &count : nullptr);
  require(list != nullptr && list[0] != nullptr, "librdmacm has no device");
  rdma_free_devices(list);
  return true;
}

constexpr std::array kCalls{
    Call{"ibv_open_device", 4, open_device},
    Call{"ibv_close_device", 2, close_device},
    Call{"ibv_query_device", 2, query_device},
    Call{"ibv_query_port", 2, query_port},
    Call{"ibv_query_gid", 3, query_gid},
    Call{"ibv_query_pkey", 1, query_pkey},
    Call{"names of values", 2, names},
    Call{"what is not supported", 1, unsupported},
    Call{"ibv_get_async_event", 15, get_async_event},
    Call{"rdma_get_devices", 1, get_devices},
};

}  // namespace

std::span<const Call> device_calls() { return kCalls; }

/// Those of all contexts.
void acknowledge_async_events(World& world) {
  for (ibv_async_event& event : world.async_events) ibv_ack_async_event(&event);
  world.async_events.clear();
}

}  // namespace random_calls
