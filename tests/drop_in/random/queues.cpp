// SPDX-License-Identifier: Apache-2.0
// Completion channels, completion queues and shared receive queues.
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "drop_in/random/world.h"

namespace random_calls {
namespace {

constexpr size_t kMostChannels = 4;
constexpr size_t kMostQueues = 10;
constexpr size_t kMostSharedQueues = 4;

// --- Channels.

bool create_channel(World& world) {
  if (world.contexts.empty() || world.channels.size() >= kMostChannels) return false;
  ibv_comp_channel* const made = ibv_create_comp_channel(world.random.one_of(world.contexts));
  if (!made_or_errno(made)) return false;
  set_nonblocking(made->fd);
  world.channels.push_back(made);
  return true;
}

bool destroy_channel(World& world) {
  if (world.channels.empty()) return false;
  ibv_comp_channel* const channel = world.random.one_of(world.channels);
  const bool used = std::ranges::any_of(
      world.queues, [channel](const ibv_cq* queue) { return queue->channel == channel; });
  const int code = ibv_destroy_comp_channel(channel);
  require(code == (used ? EBUSY : 0), "a channel was destroyed while it was used, or stays");
  if (!succeeded(code)) return false;
  remove(world.channels, channel);
  require(ibv_destroy_comp_channel(channel) == EINVAL, "a channel was destroyed twice");
  return true;
}

bool get_queue_event(World& world) {
  if (world.channels.empty()) return false;
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  if (!succeeded_or_errno(ibv_get_cq_event(world.random.one_of(world.channels), &queue, &context)))
    return false;
  require(std::ranges::count(world.queues, queue) == 1, "an event names no queue");
  ++world.queue_events[queue];
  if (world.random.chance(50)) acknowledge_events_of(world, queue);
  return true;
}

// --- Completion queues.

int some_entries(World& world) {
  return world.random.one_of({1, 16, 64, 64, 64, 256, 0, -1, 1 << 30, 1 << 20});
}

bool create_queue(World& world) {
  if (world.contexts.empty() || world.queues.size() >= kMostQueues) return false;
  ibv_comp_channel* const channel =
      world.random.chance(50) ? nullptr : world.random.one_or_null(world.channels);
  ibv_context* const context = channel != nullptr && world.random.chance(90)
                                   ? channel->context
                                   : world.random.one_of(world.contexts);
  ibv_cq* const made = ibv_create_cq(context, some_entries(world), &world, channel,
                                     world.random.one_of({0, 0, 0, 0, 0, 0, 0, 1, -1}));
  if (!made_or_errno(made)) return false;
  require(channel == nullptr || channel->context == context,
          "a queue has a channel of another context");
  world.queues.push_back(made);
  return true;
}

bool create_extended_queue(World& world) {
  if (world.contexts.empty() || world.queues.size() >= kMostQueues) return false;
  ibv_cq_init_attr_ex init{};
  init.cqe = static_cast<uint32_t>(some_entries(world));
  init.channel = world.random.chance(70) ? nullptr : world.random.one_or_null(world.channels);
  init.wc_flags =
      world.random.chance(80) ? uint64_t{IBV_WC_STANDARD_FLAGS} : world.random.below(1 << 14);
  if (world.random.chance(30)) {
    init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    init.flags = static_cast<uint32_t>(world.random.below(8));
  }
  ibv_cq_ex* const made = ibv_create_cq_ex(world.random.one_of(world.contexts), &init);
  if (!made_or_errno(made)) return false;
  world.queues.push_back(ibv_cq_ex_to_cq(made));
  world.extended_queues.push_back(ibv_cq_ex_to_cq(made));
  return true;
}

bool is_used(const World& world, const ibv_cq* queue) {
  return std::ranges::any_of(world.all_queue_pairs(), [queue](const ibv_qp* pair) {
    return pair->send_cq == queue || pair->recv_cq == queue;
  });
}

bool destroy_queue(World& world) {
  if (world.queues.empty()) return false;
  ibv_cq* const queue = world.random.one_of(world.queues);
  acknowledge_events_of(world, queue);
  const bool used = is_used(world, queue);
  const int code = ibv_destroy_cq(queue);
  require(code == (used ? EBUSY : 0),
          "a completion queue was destroyed while it was used, or stays");
  if (!succeeded(code)) return false;
  remove(world.queues, queue);
  remove(world.extended_queues, queue);
  require(ibv_destroy_cq(queue) == EINVAL, "a completion queue was destroyed twice");
  return true;
}

bool resize_queue(World& world) {
  if (world.queues.empty()) return false;
  return succeeded(ibv_resize_cq(world.random.one_of(world.queues), some_entries(world)));
}

bool request_event(World& world) {
  const auto all = world.all_queues();
  if (all.empty()) return false;
  return succeeded(ibv_req_notify_cq(world.random.one_of(all), world.random.one_of({0, 1, -1})));
}

bool poll_queue(World& world) {
  const auto all = world.all_queues();
  if (all.empty()) return false;
  std::array<ibv_wc, 32> completions{};
  const int wanted = world.random.one_of({32, 32, 32, 1, 0, -1});
  const int found = ibv_poll_cq(world.random.one_of(all), wanted, completions.data());
  require(found >= 0 && found <= std::max(wanted, 0), "more completions came than were wanted");
  return found > 0;
}

bool read_one(ibv_cq_ex* queue) {
  const ibv_wc_opcode opcode = ibv_wc_read_opcode(queue);
  ibv_wc_read_vendor_err(queue);
  ibv_wc_read_byte_len(queue);
  ibv_wc_read_imm_data(queue);
  ibv_wc_read_invalidated_rkey(queue);
  ibv_wc_read_src_qp(queue);
  ibv_wc_read_wc_flags(queue);
  ibv_wc_read_slid(queue);
  ibv_wc_read_sl(queue);
  ibv_wc_read_dlid_path_bits(queue);
  return ibv_wc_read_qp_num(queue) != 0 && opcode <= IBV_WC_DRIVER3;
}

bool poll_one_by_one(World& world) {
  if (world.extended_queues.empty()) return false;
  ibv_cq_ex* const queue = reinterpret_cast<ibv_cq_ex*>(world.random.one_of(world.extended_queues));
  ibv_poll_cq_attr attributes{.comp_mask = world.random.one_of({0U, 0U, 0U, 1U})};
  if (!succeeded(ibv_start_poll(queue, &attributes))) return false;
  do {
    require(read_one(queue), "a completion has no queue pair, or no opcode");
  } while (world.random.chance(80) && ibv_next_poll(queue) == 0);
  ibv_end_poll(queue);
  return true;
}

// --- Shared receive queues.

bool create_shared_queue(World& world) {
  if (world.domains.empty() || world.shared_queues.size() >= kMostSharedQueues) return false;
  Randomness& random = world.random;
  ibv_pd* const domain = random.one_of(world.domains);
  const ibv_srq_attr size{.max_wr = random.one_of({16U, 64U, 0U, ~0U, 70000U}),
                          .max_sge = random.one_of({1U, 4U, 0U, ~0U, 65U}),
                          .srq_limit = random.one_of({0U, 8U})};
  ibv_srq* made = nullptr;
  if (random.chance(60)) {
    ibv_srq_init_attr init{.srq_context = &world, .attr = size};
    made = ibv_create_srq(domain, &init);
  } else {
    ibv_srq_init_attr_ex init{};
    init.attr = size;
    init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
    if (random.chance(90)) init.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    init.srq_type = random.one_of({IBV_SRQT_BASIC, IBV_SRQT_BASIC, IBV_SRQT_XRC, IBV_SRQT_TM});
    init.pd = random.chance(90) ? domain : nullptr;
    made = ibv_create_srq_ex(domain->context, &init);
  }
  if (made_or_errno(made)) world.shared_queues.push_back(made);
  return made != nullptr;
}

bool change_shared_queue(World& world) {
  if (world.shared_queues.empty()) return false;
  ibv_srq* const queue = world.random.one_of(world.shared_queues);
  ibv_srq_attr attributes{};
  if (world.random.chance(50)) return succeeded(ibv_query_srq(queue, &attributes));
  attributes.srq_limit = world.random.one_of({0U, 4U, 16U, ~0U});
  attributes.max_wr = 128;
  return succeeded(ibv_modify_srq(
      queue, &attributes,
      world.random.one_of({int{IBV_SRQ_LIMIT}, int{IBV_SRQ_LIMIT}, 0, int{IBV_SRQ_MAX_WR}, 0xff})));
}

bool destroy_shared_queue(World& world) {
  if (world.shared_queues.empty()) return false;
  ibv_srq* const queue = world.random.one_of(world.shared_queues);
  acknowledge_async_events(world);
  const bool used = std::ranges::any_of(world.all_queue_pairs(),
                                        [queue](const ibv_qp* pair) { return pair->srq == queue; });
  const int code = ibv_destroy_srq(queue);
  require(code == (used ? EBUSY : 0),
          "a shared receive queue was destroyed while it was used, or stays");
  if (!succeeded(code)) return false;
  remove(world.shared_queues, queue);
  require(ibv_destroy_srq(queue) == EINVAL, "a shared receive queue was destroyed twice");
  return true;
}

constexpr std::array kCalls{
    Call{"ibv_create_comp_channel", 5, create_channel},
    Call{"ibv_destroy_comp_channel", 3, destroy_channel},
    Call{"ibv_get_cq_event", 20, get_queue_event},
    Call{"ibv_create_cq", 9, create_queue},
    Call{"ibv_create_cq_ex", 9, create_extended_queue},
    Call{"ibv_destroy_cq", 7, destroy_queue},
    Call{"ibv_resize_cq", 2, resize_queue},
    Call{"ibv_req_notify_cq", 20, request_event},
    Call{"ibv_poll_cq", 60, poll_queue},
    Call{"ibv_start_poll", 30, poll_one_by_one},
    Call{"ibv_create_srq", 5, create_shared_queue},
    Call{"ibv_modify_srq", 4, change_shared_queue},
    Call{"ibv_destroy_srq", 3, destroy_shared_queue},
};

}  // namespace

std::span<const Call> queue_calls() { return kCalls; }

void acknowledge_events_of(World& world, ibv_cq* queue) {
  ibv_ack_cq_events(queue, std::exchange(world.queue_events[queue], 0));
  world.queue_events.erase(queue);
}

}  // namespace random_calls
