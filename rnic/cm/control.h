// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "llp/connector.h"
#include "rnic/context/connection_control.h"
#include "rnic/context/device_context.h"

namespace boost::asio {
class io_context;
}

namespace diwarp::rnic {

class Meetings;

/// Something that belongs to a device and outlives it.
class Removable {
 public:
  virtual ~Removable() = default;
  virtual void on_removal() = 0;
};

inline constexpr size_t kMaxLingeringCloses = 256;
inline constexpr Duration kLingeringCloseTime = std::chrono::seconds(1);
/// A peer that is still sending more than this, in bytes, does not listen.
inline constexpr size_t kLingeringCloseBytes = size_t{64} << 10;

/// The control path of a device: connects, accepts and negotiates, with Boost.Asio. It runs on a
/// thread of its own or, in manual mode, inside the engine's steps, and so with the baton held: its
/// handlers get the baton with with_baton() alone. It knows streams and bytes, and queue pairs only
/// where an id of the connection manager has one; nothing in it keeps the device alive.
class Control final : public ConnectionControl {
 public:
  explicit Control(DeviceContext& device);
  ~Control() override;
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// Where operations begin: hand them over with boost::asio::post().
  boost::asio::io_context& context();

  /// Runs `work` while no handler runs, and returns when it is done. Not from a handler.
  void exclusively(const std::function<void()>& work);

  // --- For callers that wait, and so not from a handler.

  NegotiatedConnection connect(const Address& peer, const ConnectOptions& options) override;
  NegotiatedConnection connect_on(int descriptor, const ConnectOptions& options) override;
  NegotiatedConnection accept_on(int descriptor, const AcceptOptions& options,
                                 Duration timeout) override;

  std::shared_ptr<PendingMeeting> make_meeting(uint32_t number, const NamedPeer& peer,
                                               MeetingParty& party) override;
  /// On the control path.
  Meetings& meetings();

  /// At most for kLingeringCloseTime, and at most kMaxLingeringCloses connections.
  void start_lingering_close(std::unique_ptr<llp::Stream> stream,
                             std::vector<std::byte> final_bytes) override;

  /// For handlers: runs `work` with the engine's baton held, whether the handler has it or not.
  template <class Work>
  void with_baton(Work&& work) {
    if (!has_thread()) return work();
    engine().exclusively(std::forward<Work>(work));
  }

  // --- Those that want to know when the device goes. Any thread.

  void add_removable(std::weak_ptr<Removable> removable);
  void announce_removal();

  DeviceContext& device() { return device_; }
  const DeviceContext& device() const { return device_; }
  llp::Connector& connector() { return device_.connector(); }
  /// For add_shared().
  Counters& counters();
  /// Tells the device's event queues.
  void raise(const AsyncEvent& event);

 private:
  size_t within_memory(const std::function<size_t()>& handlers);
  void count_no_memory();
  void post_lingering_close(std::unique_ptr<llp::Stream> stream,
                            std::vector<std::byte> final_bytes);

  struct Parts;

  bool has_thread() const;
  Engine& engine();
  void run_thread();
  size_t step();

  DeviceContext& device_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace diwarp::rnic
