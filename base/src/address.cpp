// SPDX-License-Identifier: Apache-2.0
#include "diwarp/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "diwarp/error.h"

namespace diwarp {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw Error(Errc::invalid_argument,
              "\"" + std::string(text) +
                  "\" is not an address: write 1.2.3.4, 1.2.3.4:port, ::1, [::1]:port or "
                  "fe80::1%interface (names are not resolved)");
}

template <class T>
std::optional<T> number(std::string_view digits) {
  T value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

/// The parts of an address as it is written; host without brackets.
struct Written {
  std::string_view host;
  std::optional<std::string_view> port;
};

std::optional<Written> split(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (host.find(':') == std::string_view::npos) return std::nullopt;
    if (rest.empty()) return Written{host, std::nullopt};
    if (rest.front() != ':') return std::nullopt;
    return Written{host, rest.substr(1)};
  }
  // One colon parts an IPv4 address from its port; several are an IPv6 address.
  if (std::count(text.begin(), text.end(), ':') != 1) return Written{text, std::nullopt};
  const size_t colon = text.find(':');
  return Written{text.substr(0, colon), text.substr(colon + 1)};
}

/// 0 when there is no such interface.
uint32_t scope_from(std::string_view zone) {
  if (const auto index = number<uint32_t>(zone)) return *index;
  return if_nametoindex(std::string(zone).c_str());
}

std::string scope_name(uint32_t scope) {
  char name[IF_NAMESIZE];
  return if_indextoname(scope, name) != nullptr ? name : std::to_string(scope);
}

std::optional<in_addr> parse_ipv4(std::string_view host) {
  in_addr parsed{};
  if (inet_pton(AF_INET, std::string(host).c_str(), &parsed) != 1) return std::nullopt;
  return parsed;
}

std::optional<sockaddr_in6> parse_ipv6(std::string_view host) {
  sockaddr_in6 parsed{};
  parsed.sin6_family = AF_INET6;
  const size_t percent = host.find('%');
  if (inet_pton(AF_INET6, std::string(host.substr(0, percent)).c_str(), &parsed.sin6_addr) != 1) {
    return std::nullopt;
  }
  if (percent == std::string_view::npos) return parsed;
  parsed.sin6_scope_id = scope_from(host.substr(percent + 1));
  if (parsed.sin6_scope_id == 0) return std::nullopt;
  return parsed;
}

Address from_ipv4(in_addr host, uint16_t port) {
  sockaddr_in filled{};
  filled.sin_family = AF_INET;
  filled.sin_addr = host;
  filled.sin_port = htons(port);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&filled));
}

Address from_ipv6(sockaddr_in6 host, uint16_t port) {
  host.sin6_port = htons(port);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&host));
}

}  // namespace

Address Address::parse(std::string_view text, uint16_t default_port) {
  // A zero byte would end the text early for the C library.
  if (text.find('\0') != std::string_view::npos) refuse(text.substr(0, text.find('\0')));
  const auto written = split(text);
  if (!written) refuse(text);
  const auto port = written->port ? number<uint16_t>(*written->port) : default_port;
  if (!port) refuse(text);
  if (const auto ipv4 = parse_ipv4(written->host)) return from_ipv4(*ipv4, *port);
  if (const auto ipv6 = parse_ipv6(written->host)) return from_ipv6(*ipv6, *port);
  refuse(text);
}

Address Address::any(AddressFamily family, uint16_t port) {
  Address result;
  result.family_ = family;
  result.port_ = port;
  return result;
}

Address Address::loopback(AddressFamily family, uint16_t port) {
  Address result = any(family, port);
  if (family == AddressFamily::ipv4) {
    result.bytes_[0] = 127;
    result.bytes_[3] = 1;
  } else {
    result.bytes_[15] = 1;
  }
  return result;
}

Address Address::from_sockaddr(const sockaddr* source) {
  Address result;
  if (source->sa_family == AF_INET) {
    sockaddr_in read;
    std::memcpy(&read, source, sizeof read);
    std::memcpy(result.bytes_.data(), &read.sin_addr, 4);
    result.port_ = ntohs(read.sin_port);
    return result;
  }
  if (source->sa_family != AF_INET6) {
    throw Error(Errc::invalid_argument, "Only IPv4 and IPv6 socket addresses can be used");
  }
  sockaddr_in6 read;
  std::memcpy(&read, source, sizeof read);
  std::memcpy(result.bytes_.data(), &read.sin6_addr, 16);
  result.scope_id_ = read.sin6_scope_id;
  result.port_ = ntohs(read.sin6_port);
  result.family_ = AddressFamily::ipv6;
  return result;
}

socklen_t Address::to_sockaddr(sockaddr_storage& target) const {
  if (family_ == AddressFamily::ipv4) {
    sockaddr_in filled{};
    filled.sin_family = AF_INET;
    filled.sin_port = htons(port_);
    std::memcpy(&filled.sin_addr, bytes_.data(), 4);
    std::memcpy(&target, &filled, sizeof filled);
    return sizeof filled;
  }
  sockaddr_in6 filled{};
  filled.sin6_family = AF_INET6;
  filled.sin6_port = htons(port_);
  filled.sin6_scope_id = scope_id_;
  std::memcpy(&filled.sin6_addr, bytes_.data(), 16);
  std::memcpy(&target, &filled, sizeof filled);
  return sizeof filled;
}

bool Address::is_any() const {
  return std::ranges::all_of(bytes_, [](uint8_t byte) { return byte == 0; });
}

bool Address::is_loopback() const {
  if (family_ == AddressFamily::ipv4) return bytes_[0] == 127;
  return bytes_ == loopback(AddressFamily::ipv6).bytes_;
}

bool Address::is_broadcast() const {
  return family_ == AddressFamily::ipv4 &&
         std::ranges::all_of(bytes(), [](uint8_t byte) { return byte == 0xFF; });
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN];
  inet_ntop(family_ == AddressFamily::ipv4 ? AF_INET : AF_INET6, bytes_.data(), text, sizeof text);
  if (scope_id_ == 0) return text;
  return std::string(text) + "%" + scope_name(scope_id_);
}

std::string Address::to_string() const {
  if (port_ == 0) return host();
  const std::string port = ":" + std::to_string(port_);
  return family_ == AddressFamily::ipv4 ? host() + port : "[" + host() + "]" + port;
}

}  // namespace diwarp
