// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/counters.h"
#include "base/unique_fd.h"

namespace boost::asio {
class io_context;
}

namespace diwarp::rnic {

class Device;

inline constexpr size_t kMaxLingering = 256;
inline constexpr Duration kLingerTime = std::chrono::seconds(1);
/// A peer that is still sending more than this, in bytes, does not listen.
inline constexpr size_t kLingerBytes = size_t{64} << 10;

/// The control path of a device: connects, accepts and negotiates, with Boost.Asio. It runs on a
/// thread of its own or, in manual mode, inside the engine's steps, and so with the baton held: its
/// handlers must not ask for the baton. It knows descriptors and bytes, never queue pairs, and
/// nothing in it keeps the device alive.
class Control {
 public:
  explicit Control(Device& device);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// Where operations begin: hand them over with boost::asio::post().
  boost::asio::io_context& context();

  /// Runs `work` while no handler runs, and returns when it is done. Not from a handler.
  void exclusively(const std::function<void()>& work);

  /// Keeps a connection whose sending side is shut until the peer has closed its side too, so that
  /// nothing unread resets it; at most a second, and at most kMaxLingering of them. Any thread.
  void linger(UniqueFd connection);

  /// For add_shared().
  Counters& counters();

 private:
  struct Parts;

  void run_thread();
  size_t step();

  Device& device_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace diwarp::rnic
