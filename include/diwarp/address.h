// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <diwarp/export.h>

namespace diwarp {

enum class AddressFamily : uint8_t { ipv4, ipv6 };

/// An IPv4 or IPv6 address with a port and, for link-local IPv6, a scope (interface index).
/// A small value: copied, compared and hashed for every datagram. Default: 0.0.0.0, port 0.
class DIWARP_EXPORT Address {
 public:
  constexpr Address() = default;

  /// Reads "1.2.3.4", "1.2.3.4:5", "::1", "[::1]:5", "[::1]" and, with a scope, "fe80::1%eth0" or
  /// "[fe80::1%2]:5". Names are not resolved. `default_port` stands where the text has no port.
  /// Throws Error (Errc::invalid_argument) on anything else.
  static Address parse(std::string_view text, uint16_t default_port = 0);

  static Address any(AddressFamily family, uint16_t port = 0);
  static Address loopback(AddressFamily family, uint16_t port = 0);

  /// Throws Error (Errc::invalid_argument) unless the family is AF_INET or AF_INET6. The memory
  /// must be as long as that family's structure.
  static Address from_sockaddr(const sockaddr* source);

  /// Fills `target` and returns the length that the system calls want.
  socklen_t to_sockaddr(sockaddr_storage& target) const;

  AddressFamily family() const { return family_; }
  uint16_t port() const { return port_; }
  uint32_t scope_id() const { return scope_id_; }

  Address with_port(uint16_t port) const {
    Address result = *this;
    result.port_ = port;
    return result;
  }

  bool is_any() const;
  bool is_loopback() const;
  bool is_multicast() const {
    if (family_ == AddressFamily::ipv4) return (bytes_[0] & 0xF0) == 0xE0;
    return bytes_[0] == 0xFF;
  }
  /// The limited broadcast address, 255.255.255.255. A subnet's own broadcast address cannot be
  /// told from the address alone.
  bool is_broadcast() const;

  /// The address in network order: 4 bytes or 16.
  std::span<const uint8_t> bytes() const {
    return {bytes_.data(), family_ == AddressFamily::ipv4 ? size_t{4} : size_t{16}};
  }

  /// The address without its port, as in "fe80::1%eth0".
  std::string host() const;

  /// The text that parse() reads back: host() when the port is 0, else "1.2.3.4:5" or "[::1]:5".
  std::string to_string() const;

  friend bool operator==(const Address& a, const Address& b) {
    const auto one = a.words();
    const auto two = b.words();
    // Without a branch and without a call of memcmp(): done for every datagram.
    return ((one[0] ^ two[0]) | (one[1] ^ two[1]) | (one[2] ^ two[2])) == 0;
  }

  size_t hash() const {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
    uint64_t mixed = 0;
    for (uint64_t word : words()) {
      mixed = (mixed ^ word) * kOdd;
      mixed ^= mixed >> 32;
    }
    return static_cast<size_t>(mixed);
  }

 private:
  std::array<uint64_t, 3> words() const { return std::bit_cast<std::array<uint64_t, 3>>(*this); }

  // No padding, and bytes that the family does not use are zero: equality is that of all 24 bytes.
  std::array<uint8_t, 16> bytes_{};
  uint32_t scope_id_ = 0;
  uint16_t port_ = 0;  // host order
  AddressFamily family_ = AddressFamily::ipv4;
  uint8_t unused_ = 0;
};

static_assert(sizeof(Address) == 24);
static_assert(std::is_trivially_copyable_v<Address>);

}  // namespace diwarp

template <>
struct std::hash<diwarp::Address> {
  size_t operator()(const diwarp::Address& address) const noexcept { return address.hash(); }
};
