// SPDX-License-Identifier: Apache-2.0
#include "llp/tcp/tcp_peer.h"

#include <linux/tcp.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>

#include "llp/socket/socket_address.h"

namespace diwarp::llp {

namespace {

constexpr int kRtoMaxMs = 44;  // TCP_RTO_MAX_MS, which older headers do not have

using Milliseconds = std::chrono::duration<int, std::milli>;

int whole_seconds(Duration time) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

}  // namespace

std::optional<AckState> TcpPeer::ack_state() const {
  tcp_info info{};
  socklen_t length = sizeof info;
  const bool told = ::getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0;
  if (!told || length < offsetof(tcp_info, tcpi_notsent_bytes) + sizeof info.tcpi_notsent_bytes)
    return std::nullopt;
  return AckState{.outstanding = info.tcpi_unacked != 0 || info.tcpi_notsent_bytes != 0,
                  .window_closed = info.tcpi_unacked == 0 && info.tcpi_notsent_bytes != 0,
                  .since_ack = std::chrono::milliseconds(info.tcpi_last_ack_recv),
                  .timeouts = info.tcpi_retransmits,
                  .retransmitted = info.tcpi_total_retrans,
                  .probes = info.tcpi_probes};
}

/// Half of the time passes before the first probe; the others share the rest. The idle time comes
/// last, as it sets the kernel's timer anew.
void TcpPeer::keep_alive(Duration within) {
  const int total = whole_seconds(within);
  if (total < 2) {
    set_socket_option(fd.get(), SOL_SOCKET, SO_KEEPALIVE, 0);
    return;
  }
  const int idle = total / 2;
  const int interval = std::max(total / 8, 1);
  set_socket_option(fd.get(), IPPROTO_TCP, TCP_KEEPINTVL, interval);
  set_socket_option(fd.get(), IPPROTO_TCP, TCP_KEEPCNT, (total - idle) / interval);
  set_socket_option(fd.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set_socket_option(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE, idle);
}

void TcpPeer::limit_backoff(Duration most) {
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(most).count();
  set_socket_option(fd.get(), IPPROTO_TCP, kRtoMaxMs,
                    static_cast<int>(std::clamp<int64_t>(limit, 1000, 120000)));
}

std::optional<Duration> TcpPeer::backoff_limit() const {
  const int limit = socket_option(fd.get(), IPPROTO_TCP, kRtoMaxMs);
  if (limit <= 0) return std::nullopt;
  return Milliseconds(limit);
}

void TcpPeer::clear_user_timeout() {
  set_socket_option(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
}

}  // namespace diwarp::llp
