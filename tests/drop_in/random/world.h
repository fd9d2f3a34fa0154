// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "drop_in/random/randomness.h"

/// Calls of libibverbs and librdmacm with right and wrong arguments. A program may get much wrong,
/// but neither uses an object that it has destroyed, nor names memory that is not there for the
/// library to read; else it would fail over every implementation.
namespace random_calls {

/// Memory that regions, requests and peers name. It is never unmapped.
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// What peers and the library write into, and nobody looks at.
  std::span<std::byte> shared() { return {shared_, kSharedBytes}; }
  /// Memory that may not be written.
  std::span<std::byte> read_only() { return {read_only_, kReadOnlyBytes}; }
  /// What the library reads at a call: inline data, private data.
  std::span<std::byte> own() { return own_; }

 private:
  static constexpr size_t kSharedBytes = 256 * 1024;
  static constexpr size_t kReadOnlyBytes = 4096;

  std::byte* shared_;
  std::byte* read_only_;
  std::array<std::byte, 8192> own_{};
};

/// Ports of this process that nobody listens at: what goes there disturbs no other program.
class ClosedPorts {
 public:
  ClosedPorts();
  ~ClosedPorts();
  ClosedPorts(const ClosedPorts&) = delete;
  ClosedPorts& operator=(const ClosedPorts&) = delete;

  uint16_t tcp() const { return tcp_port_; }
  uint16_t udp() const { return udp_port_; }

 private:
  int tcp_;
  int udp_;
  uint16_t tcp_port_;
  uint16_t udp_port_;
};

/// All objects that the program has, and nothing that it has destroyed.
struct World {
  explicit World(uint64_t seed) : random(seed) {}

  Randomness random;
  Memory memory;
  ClosedPorts closed;

  std::vector<ibv_context*> contexts;
  std::vector<ibv_pd*> domains;
  std::vector<ibv_mr*> regions;
  std::vector<ibv_mw*> windows;
  std::vector<ibv_comp_channel*> channels;
  std::vector<ibv_cq*> queues;
  std::vector<ibv_cq*> extended_queues;  // which are among `queues`
  std::vector<ibv_srq*> shared_queues;
  std::vector<ibv_qp*> queue_pairs;  // but those of ids
  std::vector<ibv_ah*> handles;
  std::vector<rdma_event_channel*> event_channels;
  std::vector<rdma_cm_id*> ids;

  // Events that were fetched, and not acknowledged yet.
  std::map<ibv_cq*, unsigned> queue_events;
  std::vector<ibv_async_event> async_events;
  std::vector<rdma_cm_event*> cm_events;

  /// Those of ids, too.
  std::vector<ibv_qp*> all_queue_pairs() const;
  std::vector<ibv_cq*> all_queues() const;
};

/// Throws std::logic_error.
void require(bool right, const char* what);
/// The value of a function that returns an errno value. True: it succeeded.
bool succeeded(int code);
/// The same for a function that returns -1 with errno.
bool succeeded_or_errno(int result);
/// The same for a function that returns null with errno.
bool made_or_errno(const void* object);

void set_nonblocking(int descriptor);

/// Takes an object out of its pool.
template <class T>
void remove(std::vector<T>& pool, const T& object) {
  for (size_t i = 0; i < pool.size(); ++i) {
    if (pool[i] != object) continue;
    pool[i] = pool.back();
    return pool.pop_back();
  }
}

/// A kind of call. `run` makes one, or several that belong together, and returns whether it
/// succeeded; it may do nothing where what it needs is not there.
struct Call {
  const char* name;
  unsigned weight;
  bool (*run)(World&);
};

std::span<const Call> device_calls();
std::span<const Call> memory_calls();
std::span<const Call> queue_calls();
std::span<const Call> queue_pair_calls();
std::span<const Call> post_calls();
std::span<const Call> datagram_calls();
std::span<const Call> id_calls();
std::span<const Call> connection_calls();

// --- Destruction. Each acknowledges first what the library would wait for, and calls twice: the
// second time it is refused.

void destroy(World& world, ibv_qp* queue_pair);
void destroy(World& world, rdma_cm_id* id);
/// A queue pair in a group is not destroyed.
void leave_groups(ibv_qp* queue_pair);
void acknowledge_async_events(World& world);
void acknowledge_events_of(World& world, ibv_cq* queue);
void acknowledge_events_of(World& world, const rdma_cm_id* id);
/// Everything, in order; throws std::logic_error for what does not go.
void destroy_all(World& world);

}  // namespace random_calls
