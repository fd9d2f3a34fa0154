// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/unique_fd.h"
#include "diwarp/address.h"

namespace diwarp::llp {

struct UdpOptions;

/// Room for what the kernel tells beside a datagram: the drop counter, the segment size, and what
/// an adopted socket may have asked for.
inline constexpr size_t kControlBytes = 192;

/// A UDP socket for links at `local`, not bound yet. "::" will serve IPv4 as well. Throws Error.
UniqueFd open_udp_socket(const Address& local);

/// Throws Error: Errc::address_in_use, or the system's errno, with a sentence.
void bind_udp_socket(int fd, const Address& local);

/// Both at once.
UniqueFd bound_udp_socket(const Address& local);

/// The descriptor, taken over; throws as UdpLink::adopt() does.
UniqueFd adoptable_udp_socket(int bound_descriptor, const UdpOptions& options);

}  // namespace diwarp::llp
