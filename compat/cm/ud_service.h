// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/completion_queue.h>
#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "compat/cm/event_channel.h"
#include "compat/cm/ud_messenger.h"
#include "compat/cm/ud_queries.h"
#include "compat/cm/ud_request.h"
#include "compat/cm/ud_requests_seen.h"

namespace diwarp::compat {

/// Resolves UD services for the ids of a device: asks for those of others, and hands requests for
/// this process's own to their listeners. A thread receives and repeats. It lives as long as the
/// process.
class UdService {
 public:
  /// Of this process: a forked child gets one of its own.
  static UdService& of(ibv_device* device);

  /// Asks for the service at an address. What comes of it is an event of the id.
  void ask(uint64_t id, const Address& service, std::span<const std::byte> private_data);
  void cancel(uint64_t id);

  /// Requests to the port become events of the id.
  void listen(uint64_t id, UdpPort port);
  void stop_listening(uint64_t id);
  void answer(uint64_t listener, const UdRequestKey& key, const UdAnswerMessage& message);

 private:
  struct Listener {
    std::unique_ptr<UdMessenger> messenger;
    UdRequestsSeen seen;
  };
  /// An event for an id, which is left there without the lock.
  using Events = std::vector<std::pair<uint64_t, PendingCmEvent>>;
  static constexpr uint64_t kAsker = 0;  ///< context of the queue pair that asks

  explicit UdService(ibv_device* device);
  void run();
  void serve(uint64_t context);
  void on_answer(const Address& source, std::span<const std::byte> bytes, Events& events);
  void on_request(uint64_t id, const Address& source, std::span<const std::byte> bytes,
                  Events& events);
  void run_timers();
  Duration wait() const;
  void send(UdMessenger& messenger, const Address& destination, std::span<const std::byte> message);
  static void leave(Events events);

  const pid_t process_;
  ibv_device* const device_;
  diwarp::CompletionChannel channel_;
  mutable std::mutex mutex_;  // guards what follows
  UdMessenger asker_;
  UdQueries queries_;
  std::map<uint64_t, Listener> listeners_;
  std::random_device random_;
};

}  // namespace diwarp::compat
