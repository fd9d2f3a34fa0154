// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/closed_in_child.h"
#include "base/unique_fd.h"
#include "llp/local/local_connection.h"

namespace diwarp::llp {

/// Packets of one connection that one look takes.
inline constexpr size_t kMaxPacketsPerLook = 8;

/// The connections of a device to others of its host, in both roles, and its listening socket, in
/// one epoll set.
class ConnectionSet {
 public:
  enum class Role : uint8_t {
    producer,  ///< this side connected: it offers rings
    consumer,  ///< the other side did
  };
  /// What came: packets of this connection, or its end.
  struct News {
    Role role = Role::producer;
    std::shared_ptr<LocalConnection> connection;
  };

  /// Throws Error where the system gives no descriptor.
  ConnectionSet();

  int descriptor() const { return epoll_.get(); }
  size_t size() const { return members_.size(); }
  size_t size(Role role) const;
  /// Nothing is for age() to do.
  bool is_idle() const { return members_.empty() && !arrivals_wait_; }

  /// False where the system cannot watch it.
  bool listen(UniqueFd listener);
  bool add(Role role, const std::shared_ptr<LocalConnection>& connection);
  void remove(const LocalConnection& connection);

  /// Once a second. Closes connections of others for which `is_needed` was false some times in a
  /// row, and lets arrivals come again for which there was no descriptor.
  void age(const std::function<bool(const LocalConnection&)>& is_needed);

  /// Calls `on_news` for connections that have something, and `on_arrival` with new ones.
  void look(const std::function<void(const News&)>& on_news,
            const std::function<void(UniqueFd)>& on_arrival);

 private:
  struct Member {
    Member(uint64_t in_set, Role role, const std::shared_ptr<LocalConnection>& connection)
        : key(in_set),
          what{.role = role, .connection = connection},
          socket(connection->socket()),
          process(connection->process()) {}

    const uint64_t key;  // in the epoll set
    const News what;
    ClosedInChild socket;
    ClosedInChild process;
    uint32_t unneeded = 0;  // calls of age() in a row
  };
  const Member* find(uint64_t key) const;
  void accept(const std::function<void(UniqueFd)>& on_arrival);

  void rearm();

  UniqueFd epoll_;
  const ClosedInChild epoll_in_child_;
  UniqueFd listener_;
  std::optional<ClosedInChild> listener_in_child_;
  std::vector<std::unique_ptr<Member>> members_;
  bool arrivals_wait_ = false;  // there was no descriptor for them
  uint64_t next_key_ = 0;       // even; that of a process has the lowest bit as well
};

}  // namespace diwarp::llp
