// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "diwarp/address.h"

/// The Unix sockets by which devices of one host meet. None of these calls blocks.
namespace diwarp::llp {

/// Devices of one user at one address that can be met; others find no name.
inline constexpr uint32_t kMaxLocalNames = 64;

/// The abstract name of the device with this number among those of `user` at `address`.
std::string local_name(uid_t user, const Address& address, uint32_t number);

/// A listening socket with this name; none, with errno (EADDRINUSE: another has it).
UniqueFd listen_locally(const std::string& name);

/// Connects `socket`, or, where that is none yet, a new one, to the device with this name. False,
/// with errno (ECONNREFUSED: there is none), and then the socket can be tried on another name.
bool connect_locally(const std::string& name, UniqueFd& socket);

/// The next connection; none, with errno (EAGAIN: nobody waits).
UniqueFd accept_locally(int listener);

/// The process at the other end.
struct LocalPeerProcess {
  UniqueFd pidfd;  ///< polls readable once the process has ended
  pid_t pid = 0;
  uid_t user = 0;
};

/// Nothing where the kernel does not tell, or the process is of another PID namespace, or has
/// ended.
std::optional<LocalPeerProcess> peer_process(int connection);

/// Whether the other end is closed.
bool is_hung_up(int connection);

/// Whether something waits in it, descriptors perhaps: what is closed with those waits as they
/// want.
bool has_unread(int connection);

/// Sends a packet, with a descriptor if it is not -1. False, with errno, where the socket takes
/// none now (EAGAIN) or is broken. Whoever has the other end cannot make this wait.
bool send_packet(int connection, ConstBytes packet, int descriptor = -1);

struct ReceivedPacket {
  size_t bytes = 0;      ///< 0: the connection has ended
  bool whole = false;    ///< false: it was longer than the memory for it
  bool foreign = false;  ///< descriptors came with it that are none of memory, and are closed
  UniqueFd descriptor;   ///< the first of memory that came with it; all others are closed
};

/// The next packet; nothing, with errno, where none waits (EAGAIN) or the connection is broken.
std::optional<ReceivedPacket> receive_packet(int connection, Bytes into);

}  // namespace diwarp::llp
