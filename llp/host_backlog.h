// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// What the host loses before a packet comes to any socket: each processor has a queue (backlog) of
/// net.core.netdev_max_backlog packets for what its devices bring. The kernel counts that of the
/// whole host, namespaces and other programs' packets included.
namespace diwarp::llp {

/// The sum that a text of the form of /proc/net/softnet_stat tells: a line of hexadecimal numbers
/// for each processor, the second of which counts drops. Nothing where the text is not of that
/// form.
std::optional<uint64_t> backlog_drops_in(std::string_view softnet_stat);

/// That of this host, since it was started; 0 where the system does not tell. Reads a file: not for
/// the data path.
uint64_t backlog_drops_of_host() noexcept;

}  // namespace diwarp::llp
