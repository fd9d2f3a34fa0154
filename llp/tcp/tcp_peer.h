// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"
#include "llp/ack_watch.h"

/// Whether the peer of a TCP connection still answers: how it is asked, and what TCP knows of its
/// answers. By descriptor; TcpStream has the same of a stream.
namespace diwarp::llp {

/// Nothing where the kernel does not tell (TCP_INFO).
std::optional<AckState> ack_state(int fd);

/// Has TCP probe the peer while nothing is outstanding, such that the connection fails (ETIMEDOUT)
/// when nothing came from its TCP for so long; at least 2 s, in whole seconds. Zero: no probes.
void keep_alive(int fd, Duration within);

/// The most time between two probes of a closed window (and between two retransmissions), as far as
/// the kernel lets it be set (TCP_RTO_MAX_MS, Linux 6.15): 1 s to 120 s.
void limit_backoff(int fd, Duration most);
/// What it is now; nothing where the kernel has no such option.
std::optional<Duration> backoff_limit(int fd);

/// A limit that somebody else set on the descriptor (TCP_USER_TIMEOUT) holds no more: it would also
/// end connections whose peer keeps its window closed.
void clear_user_timeout(int fd);

}  // namespace diwarp::llp
