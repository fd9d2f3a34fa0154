// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <condition_variable>
#include <mutex>

#include "fake_rdma_core/failure.h"

/// What all objects that a program holds have in common.
namespace fake {

/// Objects that are there now, of all kinds.
int live_objects();

/// One of the objects that live_objects() counts.
class Counted {
 public:
  Counted();
  ~Counted();
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

/// How many others rest on an object, which therefore cannot be destroyed.
class Users {
 public:
  void add() { change(1); }
  void remove() { change(-1); }
  void check_none() const {
    const std::lock_guard lock(mutex_);
    refuse_if(count_ != 0, EBUSY);
  }

 private:
  void change(int by) {
    const std::lock_guard lock(mutex_);
    count_ += by;
  }

  mutable std::mutex mutex_;
  int count_ = 0;
};

/// Rests on an object for as long as it lives.
class Use {
 public:
  explicit Use(Users* users) : users_(users) {
    if (users_ != nullptr) users_->add();
  }
  ~Use() {
    if (users_ != nullptr) users_->remove();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Users* users_;
};

/// Events of an object that were fetched, and those of them that were acknowledged: the object
/// lives until both are equal.
class Acknowledgements {
 public:
  void count_fetched() {
    const std::lock_guard lock(mutex_);
    ++fetched_;
  }
  /// Notified with the lock held: wait() may destroy the object right after.
  void acknowledge(unsigned count) {
    const std::lock_guard lock(mutex_);
    acknowledged_ += count;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return acknowledged_ >= fetched_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned fetched_ = 0;
  unsigned acknowledged_ = 0;
};

}  // namespace fake
