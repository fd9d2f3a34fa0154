// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace diwarp::compat {

/// Length of an address of a family that is known here; 0 for others, and for null.
socklen_t length_of(const sockaddr* address);

/// Throws Refusal(EAFNOSUPPORT) for families other than IPv4 and IPv6. An IPv4 address inside an
/// IPv6 one becomes IPv4.
Address address_of(const sockaddr* source);
/// Writes the address with its port to where a program has room for any.
void write_sockaddr(const Address& address, sockaddr_storage& target);

/// The addresses of the host's interfaces that are up, IPv4 first, without ports.
std::vector<Address> host_addresses();

/// Whether no packet to `address` leaves this host. Programs may leave out the scope of a
/// link-local address, which tells which of several is meant.
bool is_of_this_host(const Address& address);
/// Of a connection with `peer`: within this host it goes from memory to memory.
bool wants_crc(const Address& peer);

bool is_link_local(const Address& address);
bool is_unspecific(const Address& address);  ///< a wildcard or a loopback address

/// The 16 bytes of a GID: an IPv6 address, or an IPv4 one mapped into it.
std::array<uint8_t, 16> gid_bytes(const Address& address);
/// The address that a GID names.
Address address_of_gid(std::span<const uint8_t, 16> gid);

/// Which addresses have GIDs of a device, and in which order: loopback and link-local ones are
/// last.
std::vector<Address> gid_order(std::span<const Address> addresses);

}  // namespace diwarp::compat
