// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "bridge/rdma_core.h"
#include "bridge/waiting_completions.h"
#include "diwarp/types.h"

namespace diwarp::bridge {

class ProtectionDomain;
enum class BindingEnd : uint8_t;

/// Where the completions of a poll go: to the application as long as it has room, else they wait.
class CompletionSink {
 public:
  /// None waits, unless `room` is empty.
  CompletionSink(std::span<WorkCompletion> room, WaitingCompletions& waiting)
      : room_(room), waiting_(waiting) {}

  /// The next completion, to be filled in.
  WorkCompletion& add(WorkTable& table, uint32_t slot) {
    ++shown_;
    if (count_ == room_.size()) return waiting_.add(table, slot);
    last_slot_ = slot;
    return room_[count_++];
  }

  /// How many the application has got.
  size_t count() const { return count_; }
  /// How many it gets, now or from those that wait.
  size_t shown() const { return shown_; }
  size_t left() const { return room_.size() - count_; }
  /// Of the newest that the application has got.
  uint32_t last_slot() const { return last_slot_; }

 private:
  const std::span<WorkCompletion> room_;
  WaitingCompletions& waiting_;
  size_t count_ = 0;
  size_t shown_ = 0;
  uint32_t last_slot_ = 0;
};

/// The requests that a work queue of the device holds, with what their completions must tell and a
/// device does not. A request is named by its slot, which the device returns in its completion.
class WorkTable {
 public:
  WorkTable();
  virtual ~WorkTable() = default;

  // A request's wr_id at the device: the table's number, which no other of the process has, and the
  // slot.
  uint32_t number() const { return number_; }
  uint64_t wr_id(uint32_t slot) const { return uint64_t{number_} << 32 | slot; }
  static uint32_t number_in(uint64_t wr_id) { return static_cast<uint32_t>(wr_id >> 32); }
  static uint32_t slot_in(uint64_t wr_id) { return static_cast<uint32_t>(wr_id); }

  // --- With the completion queue's mutex held.

  /// The device has completed a request. Adds to `sink` the completions that the application gets
  /// now: none, or several.
  virtual void complete(const ibv_wc& wc, uint32_t slot, CompletionSink& sink) = 0;
  /// The application has the completion: the request's place is free, and in a QueueTable those
  /// before it.
  virtual void release(uint32_t slot) = 0;
  /// The slots of requests that have no completion yet, in order.
  virtual std::vector<uint32_t> outstanding() const = 0;
  /// Adds to `sink` the completions of requests whose turn has come, though the device has told of
  /// none.
  virtual void finish_completed(CompletionSink& /*sink*/) {}

 private:
  const uint32_t number_;
};

/// A send queue's, or a queue pair's own receive queue's. The application gets completions in the
/// order in which it posted, which siw does not keep between Reads and what follows them; places
/// become free in that order. One thread posts at a time; another one completes.
class QueueTable : public WorkTable {
 public:
  struct Request {
    uint64_t wr_id;
    WcOpcode opcode;
    bool reported;            // the application wants the completion of a success
    bool completed;           // by the device, before one that was posted earlier; with `result`
    uint32_t bytes;           // sends
    uint32_t sge_count;       // receives; their owner keeps the SGEs by the index of the place
    MemoryBinding binding;    // bind_window; its `stag`: local_invalidate, too
    uint64_t binding_number;  // bind_window: see ProtectionDomain::add_binding()
    ibv_wc result;
  };

  QueueTable(uint32_t capacity, ibv_qp& queue_pair, ProtectionDomain& domain);
  ~QueueTable() override;

  uint32_t posted() const {
    return static_cast<uint32_t>(posted_.load(std::memory_order_acquire) -
                                 freed_.load(std::memory_order_acquire));
  }
  bool full() const { return posted() == capacity_; }
  /// Receives that are flushed stay posted: no connection was there yet.
  void keep_flushed(bool keep) { keeps_flushed_.store(keep, std::memory_order_release); }
  /// Indexes are below this.
  static size_t places(uint32_t capacity);
  size_t index_of(uint64_t place) const { return place & mask_; }
  // The requests that have no completion yet, by their places, in order.
  uint64_t first_unfinished() const { return finished_; }
  uint64_t next_place() const { return posted_.load(std::memory_order_relaxed); }
  const Request& at(uint64_t place) const { return requests_[place & mask_]; }

  /// A request has failed, other than by being flushed.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  /// Every request has its completion.
  bool idle() const { return finished_.load(std::memory_order_acquire) == posted_; }

  /// The request that add() takes next, to be filled in but for what the device's completion says.
  /// A place must be there.
  Request& next() { return at(posted_.load(std::memory_order_relaxed)); }
  /// Takes its place. Returns its slot.
  uint32_t add();
  /// The same of a request that the device does not get: it is flushed once those before it have
  /// their completions. CompletionQueue::finish_completed()
  /// looks whether they have.
  void add_flushed();
  /// The newest `count` were not posted after all.
  void take_back(uint32_t count);

  void complete(const ibv_wc& wc, uint32_t slot, CompletionSink& sink) override;
  void release(uint32_t slot) override;
  std::vector<uint32_t> outstanding() const override;
  void finish_completed(CompletionSink& sink) override;

 private:
  void finish(uint64_t place, const ibv_wc& wc, CompletionSink& sink);
  void finish_completed_from(uint64_t next, CompletionSink& sink);
  Request& at(uint64_t place) { return requests_[place & mask_]; }
  uint64_t place_of(uint32_t slot) const;
  void free_finished(uint64_t from);
  void apply(const Request& request);
  void end_bindings(uint64_t from, BindingEnd end);
  void fail();

  const uint32_t capacity_;
  const uint64_t mask_;  // of the places' indexes
  const std::unique_ptr<Request[]> requests_;
  const uint32_t qp_number_;
  ibv_qp& queue_pair_;  // lives until the table is detached from its completion queue
  ProtectionDomain& domain_;
  // Places in order: freed_ <= finished_ <= posted_.
  std::atomic<uint64_t> posted_{0};
  std::atomic<uint64_t> finished_{0};
  std::atomic<uint64_t> freed_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> keeps_flushed_{false};
};

/// Is told of each message that has taken a shared receive, with the completion queue's mutex held.
class ReceiveObserver {
 public:
  virtual void on_receive_taken() = 0;

 protected:
  ~ReceiveObserver() = default;
};

/// A shared receive queue's: places become free in any order.
class SharedTable final : public WorkTable {
 public:
  SharedTable(uint32_t capacity, ProtectionDomain& domain, ReceiveObserver& observer);

  /// Takes a place and returns its slot. False where all are taken.
  bool add(uint64_t wr_id, uint32_t& slot);
  void take_back(uint32_t slot);
  /// Of which no completion has come.
  uint32_t posted() const;

  void complete(const ibv_wc& wc, uint32_t slot, CompletionSink& sink) override;
  void release(uint32_t slot) override;
  std::vector<uint32_t> outstanding() const override { return {}; }

 private:
  ProtectionDomain& domain_;
  ReceiveObserver& observer_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<uint64_t> wr_ids_;
  std::vector<uint32_t> free_;
  uint32_t completed_ = 0;  // and not released
};

}  // namespace diwarp::bridge
