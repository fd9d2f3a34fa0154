// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/unique_fd.h"
#include "llp/local/local_packet.h"
#include "llp/local/local_socket.h"

namespace diwarp::llp {

/// A connection to another device of this host whose process is this user's.
class LocalConnection {
 public:
  /// Null where the process at the other end is another user's or cannot be seen: then the socket
  /// is left as it is.
  static std::shared_ptr<LocalConnection> over(UniqueFd& socket);
  ~LocalConnection();

  int socket() const { return socket_.get(); }
  /// Polls readable once the process at the other end has ended: a child of it may hold the socket.
  int process() const { return process_.get(); }

  bool process_has_ended() const;

  /// False: the socket has no room for it now, or the connection is over.
  bool send(const LocalPacket& packet, int descriptor = -1);
  /// A packet of this kind alone, which says no more than that the other end is to look: where the
  /// socket has no room something waits there already, and that has it look as well.
  void nudge(LocalPacket::Kind kind);

  /// The next packet, and the descriptor that came with it; nothing where none waits. Anything but
  /// a packet ends the connection.
  std::optional<std::pair<LocalPacket, UniqueFd>> receive();

  /// Nothing more goes over it.
  bool is_over() const { return over_.load(std::memory_order_relaxed); }
  void end() { over_.store(true, std::memory_order_relaxed); }

 private:
  LocalConnection(UniqueFd socket, UniqueFd process)
      : socket_(std::move(socket)), process_(std::move(process)) {}

  UniqueFd socket_;
  const UniqueFd process_;
  std::atomic<bool> over_{false};  // with the baton, but for a link that is destroyed
};

}  // namespace diwarp::llp
