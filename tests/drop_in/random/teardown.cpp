// SPDX-License-Identifier: Apache-2.0
// The end of the program: everything goes, in order.
#include "drop_in/random/world.h"

namespace random_calls {
namespace {

/// Destroys all of a pool by a function that returns 0.
template <class Object, class Destroy>
void destroy_pool(std::vector<Object*>& pool, Destroy one, const char* what) {
  for (Object* object : pool) require(one(object) == 0, what);
  pool.clear();
}

}  // namespace

void destroy_all(World& world) {
  // Requests that nobody fetched go with their listeners; those that were are among the ids.
  while (!world.ids.empty()) destroy(world, world.ids.back());
  require(world.cm_events.empty(), "an event was about no id");
  for (rdma_event_channel* channel : world.event_channels) rdma_destroy_event_channel(channel);
  while (!world.queue_pairs.empty()) destroy(world, world.queue_pairs.back());
  acknowledge_async_events(world);
  destroy_pool(world.handles, ibv_destroy_ah, "an address handle stays");
  destroy_pool(world.windows, ibv_dealloc_mw, "a window stays");
  destroy_pool(world.regions, ibv_dereg_mr, "a region stays");
  destroy_pool(world.shared_queues, ibv_destroy_srq, "a shared receive queue stays");
  while (!world.queue_events.empty())
    acknowledge_events_of(world, world.queue_events.begin()->first);
  destroy_pool(world.queues, ibv_destroy_cq, "a completion queue stays");
  destroy_pool(world.channels, ibv_destroy_comp_channel, "a channel stays");
  destroy_pool(world.domains, ibv_dealloc_pd, "a domain stays");
  destroy_pool(world.contexts, ibv_close_device, "a context stays");
}

}  // namespace random_calls
