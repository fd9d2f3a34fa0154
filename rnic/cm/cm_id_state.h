// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>

#include "diwarp/address.h"

namespace diwarp::rnic {

enum class CmState : uint8_t {
  idle,
  bound,
  address_resolved,
  route_resolved,
  listening,
  connecting,  ///< the initiator's request is on its way
  requested,   ///< the responder has not answered
  accepting,   ///< it has, and waits for the initiator's first FPDU
  established,
  over,    ///< failed, rejected, disconnected
  closed,  ///< nobody has the id any more
};

/// The state of an id of the connection manager, and the addresses that it has in it. Its CmCore
/// owns it. Any thread.
class CmIdState {
 public:
  CmState now() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  /// False, and nothing changes, unless the state is one of `from`.
  bool move(std::initializer_list<CmState> from, CmState to) {
    const std::lock_guard lock(mutex_);
    if (std::find(from.begin(), from.end(), state_) == from.end()) return false;
    state_ = to;
    return true;
  }
  /// Runs `work` while the state stays as it is, if the id is not closed.
  template <class Work>
  void unless_closed(Work&& work) const {
    const std::lock_guard lock(mutex_);
    // guard(connection-manager): without if (state_ != CmState::closed)
    if (state_ != CmState::closed) work();
  }

  Address local() const {
    const std::lock_guard lock(mutex_);
    return local_;
  }
  Address peer() const {
    const std::lock_guard lock(mutex_);
    return peer_;
  }
  /// The address that the application chose; nothing where it did not.
  std::optional<Address> bound() const {
    const std::lock_guard lock(mutex_);
    return bound_;
  }
  void bind(const Address& local) {
    const std::lock_guard lock(mutex_);
    bound_ = local_ = local;
  }
  void set_addresses(const Address& local, const Address& peer) {
    const std::lock_guard lock(mutex_);
    local_ = local;
    peer_ = peer;
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  CmState state_ = CmState::idle;
  Address local_;
  Address peer_;
  std::optional<Address> bound_;
};

}  // namespace diwarp::rnic
