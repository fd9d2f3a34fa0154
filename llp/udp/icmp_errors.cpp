// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/icmp_errors.h"

#include <linux/errqueue.h>
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "llp/socket/socket_address.h"

namespace diwarp::llp {
namespace {

using Kind = IcmpReport::Kind;

/// Room for the beginning of what was sent, which is all that reports need.
constexpr size_t kQuoted = 64;
/// Room for IP_RECVERR, and for what else the socket may have been asked for.
constexpr size_t kControl = 512;

// RFC 792, RFC 1122 section 3.2.2.1, RFC 1812 section 5.2.7.1.
std::optional<Kind> kind_of_icmp(uint8_t type, uint8_t code) {
  if (type == ICMP_TIME_EXCEEDED) return Kind::host;
  if (type != ICMP_DEST_UNREACH) return std::nullopt;
  switch (code) {
    case ICMP_PORT_UNREACH:
      return Kind::port;
    case ICMP_NET_ANO:
    case ICMP_HOST_ANO:
    case ICMP_PKT_FILTERED:
      return Kind::prohibited;
    case ICMP_FRAG_NEEDED:
      return std::nullopt;
    default:
      return Kind::host;
  }
}

// RFC 4443 section 3.
std::optional<Kind> kind_of_icmp6(uint8_t type, uint8_t code) {
  if (type == ICMPV6_TIME_EXCEED) return Kind::host;
  if (type != ICMPV6_DEST_UNREACH) return std::nullopt;
  switch (code) {
    case ICMPV6_PORT_UNREACH:
      return Kind::port;
    case ICMPV6_ADM_PROHIBITED:
    case ICMPV6_POLICY_FAIL:
    case ICMPV6_REJECT_ROUTE:
      return Kind::prohibited;
    default:
      return Kind::host;
  }
}

bool is_of_icmp(const sock_extended_err& error) {
  return error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6;
}

/// The address that an extended error ends with: who sent the ICMP message.
Address reporter_in(const cmsghdr& message) {
  constexpr size_t kBefore = CMSG_LEN(sizeof(sock_extended_err));
  sockaddr_storage name{};
  const size_t bytes = message.cmsg_len > kBefore ? message.cmsg_len - kBefore : 0;
  if (bytes < sizeof(sockaddr_in)) return {};
  std::memcpy(&name, CMSG_DATA(&message) + sizeof(sock_extended_err), std::min(bytes, sizeof name));
  const bool whole =
      name.ss_family == AF_INET || (name.ss_family == AF_INET6 && bytes >= sizeof(sockaddr_in6));
  if (!whole) return {};
  return from_socket_address(name, static_cast<socklen_t>(std::min(bytes, sizeof name)))
      .with_port(0);
}

const cmsghdr* extended_error_in(msghdr& entry) {
  for (cmsghdr* message = CMSG_FIRSTHDR(&entry); message != nullptr;
       message = CMSG_NXTHDR(&entry, message)) {
    const bool ipv4 = message->cmsg_level == SOL_IP && message->cmsg_type == IP_RECVERR;
    const bool ipv6 = message->cmsg_level == SOL_IPV6 && message->cmsg_type == IPV6_RECVERR;
    if ((ipv4 || ipv6) && message->cmsg_len >= CMSG_LEN(sizeof(sock_extended_err))) return message;
  }
  return nullptr;
}

std::optional<sock_extended_err> error_in(const cmsghdr* message) {
  if (message == nullptr) return std::nullopt;
  sock_extended_err error;
  std::memcpy(&error, CMSG_DATA(message), sizeof error);
  return error;
}

}  // namespace

std::optional<IcmpReport> icmp_report_in(msghdr& entry, ConstBytes quoted) {
  const cmsghdr* const message = extended_error_in(entry);
  const std::optional<sock_extended_err> error = error_in(message);
  if (!error || !is_of_icmp(*error)) return std::nullopt;
  const std::optional<Kind> kind = error->ee_origin == SO_EE_ORIGIN_ICMP
                                       ? kind_of_icmp(error->ee_type, error->ee_code)
                                       : kind_of_icmp6(error->ee_type, error->ee_code);
  if (!kind || entry.msg_name == nullptr) return std::nullopt;
  const Address to =
      from_socket_address(*static_cast<const sockaddr_storage*>(entry.msg_name), entry.msg_namelen);
  return IcmpReport{
      .destination = to, .reporter = reporter_in(*message), .kind = *kind, .quoted = quoted};
}

void IcmpErrors::listen(sa_family_t family) {
  set_socket_option(fd_, IPPROTO_IP, IP_RECVERR, 1);
  if (family == AF_INET6) set_socket_option(fd_, IPPROTO_IPV6, IPV6_RECVERR, 1);
}

size_t IcmpErrors::collect() {
  size_t count = 0;
  for (size_t entries = 0; entries < kEntriesPerLook; ++entries) {
    std::array<std::byte, kQuoted> quoted;
    alignas(cmsghdr) std::array<char, kControl> control;
    sockaddr_storage name{};
    iovec piece = {quoted.data(), quoted.size()};
    msghdr entry{};
    entry.msg_name = &name;
    entry.msg_namelen = sizeof name;
    entry.msg_iov = &piece;
    entry.msg_iovlen = 1;
    entry.msg_control = control.data();
    entry.msg_controllen = control.size();
    const ssize_t bytes = ::recvmsg(fd_, &entry, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (bytes < 0) break;
    const std::optional<sock_extended_err> error = error_in(extended_error_in(entry));
    if (!error || !is_of_icmp(*error)) continue;
    ++count;
    const auto told = icmp_report_in(entry, ConstBytes(quoted).first(static_cast<size_t>(bytes)));
    if (told) report(*told);
  }
  return count;
}

}  // namespace diwarp::llp
