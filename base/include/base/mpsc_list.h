// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

namespace diwarp {

/// Derive from this to be put into an MpscList. A node is in at most one list, once.
struct MpscNode {
  std::atomic<MpscNode*> next{nullptr};
};

/// Hands nodes from any threads to one. The list owns nothing: a node must live until the consumer
/// has met it, and may be pushed again from then on.
class MpscList {
 public:
  MpscList() = default;
  MpscList(const MpscList&) = delete;
  MpscList& operator=(const MpscList&) = delete;

  /// Any thread. True when the list was empty, so that only the first of many wakes the consumer.
  bool push(MpscNode& node) {
    MpscNode* newest = newest_.load(std::memory_order_relaxed);
    do {
      node.next.store(newest, std::memory_order_relaxed);
      // The consumer sees everything that was written before push(). Sequentially consistent, so
      // that "push, then try a lock" and "unlock, then empty()" cannot both miss each other, if
      // the lock is so too. SpinFlag is not: between its unlock() and empty() stands a fence.
    } while (!newest_.compare_exchange_weak(newest, &node, std::memory_order_seq_cst,
                                            std::memory_order_relaxed));
    return newest == nullptr;
  }

  bool empty() const { return newest_.load(std::memory_order_seq_cst) == nullptr; }

  /// Consumer. Detaches all nodes and returns the oldest; the others follow through `next`, in the
  /// order of their push(). Read `next` before handing a node back.
  MpscNode* pop_all() {
    if (empty()) return nullptr;
    MpscNode* node = newest_.exchange(nullptr, std::memory_order_acquire);
    MpscNode* oldest = nullptr;
    while (node != nullptr) {
      MpscNode* older = node->next.load(std::memory_order_relaxed);
      node->next.store(oldest, std::memory_order_relaxed);
      oldest = node;
      node = older;
    }
    return oldest;
  }

  /// Consumer. Detaches all nodes and calls `visit(MpscNode&)` for each, oldest first; `visit` may
  /// push the node again or destroy it. Returns how many there were.
  template <class Visit>
  size_t drain(Visit&& visit) {
    size_t count = 0;
    for (MpscNode* node = pop_all(); node != nullptr; ++count) {
      MpscNode* following = node->next.load(std::memory_order_relaxed);
      visit(*node);
      node = following;
    }
    return count;
  }

 private:
  std::atomic<MpscNode*> newest_{nullptr};
};

}  // namespace diwarp
