// SPDX-License-Identifier: Apache-2.0
#include "llp/local/local_connection.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "llp/socket/close_elsewhere.h"

namespace diwarp::llp {

std::shared_ptr<LocalConnection> LocalConnection::over(UniqueFd& socket) {
  std::optional<LocalPeerProcess> process = peer_process(socket.get());
  // guard(local-user): condition => !process
  if (!process || process->user != ::geteuid()) return nullptr;
  return std::shared_ptr<LocalConnection>(
      new LocalConnection(std::move(socket), std::move(process->pidfd)));
}

LocalConnection::~LocalConnection() {
  if (has_unread(socket())) close_elsewhere(std::move(socket_));
}

bool LocalConnection::process_has_ended() const {
  pollfd one{.fd = process(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) == 1;
}

bool LocalConnection::send(const LocalPacket& packet, int descriptor) {
  if (is_over()) return false;
  if (send_packet(socket(), encode(packet), descriptor)) return true;
  if (errno != EAGAIN) end();
  return false;
}

void LocalConnection::nudge(LocalPacket::Kind kind) { send({.kind = kind}); }

std::optional<std::pair<LocalPacket, UniqueFd>> LocalConnection::receive() {
  if (is_over()) return std::nullopt;
  std::array<std::byte, kLocalPacketBytes> bytes;
  auto got = receive_packet(socket(), bytes);
  if (!got) {
    if (errno != EAGAIN && errno != EINTR) end();
    return std::nullopt;
  }
  const auto packet = decode_local_packet(ConstBytes(bytes).first(got->bytes));
  if (!packet || !got->whole || got->foreign) {  // the end as well, which has no bytes
    end();
    return std::nullopt;
  }
  return std::pair(*packet, std::move(got->descriptor));
}

}  // namespace diwarp::llp
