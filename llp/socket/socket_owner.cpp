// SPDX-License-Identifier: Apache-2.0
#include "llp/socket/socket_owner.h"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/unique_fd.h"
#include "llp/socket/netlink.h"
#include "llp/socket/socket_address.h"

namespace diwarp::llp {
namespace {

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

Question question_of(uint8_t protocol, const Address& source, const Address& destination) {
  Question question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = question.request;
  request.sdiag_family = source.family() == AddressFamily::ipv4 ? AF_INET : AF_INET6;
  request.sdiag_protocol = protocol;
  request.idiag_states = ~0u;
  request.id.idiag_sport = htons(source.port());
  request.id.idiag_dport = htons(destination.port());
  std::memcpy(request.id.idiag_src, source.bytes().data(), source.bytes().size());
  std::memcpy(request.id.idiag_dst, destination.bytes().data(), destination.bytes().size());
  request.id.idiag_if = source.scope_id() != 0 ? source.scope_id() : destination.scope_id();
  request.id.idiag_cookie[0] = request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

std::optional<inet_diag_msg> ask(const Question& question) {
  std::array<std::byte, 1024> answer;
  const ConstBytes all(reinterpret_cast<const std::byte*>(&question), sizeof question);
  const ConstBytes got = ask_netlink(NETLINK_SOCK_DIAG, all, answer);
  if (got.size() < NLMSG_LENGTH(sizeof(inet_diag_msg))) return std::nullopt;
  nlmsghdr header;
  inet_diag_msg told;
  std::memcpy(&header, got.data(), sizeof header);
  std::memcpy(&told, got.data() + NLMSG_HDRLEN, sizeof told);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  return told;
}

}  // namespace

std::optional<uid_t> owner_of_udp_socket(const Address& local, const Address& peer) {
  if (local.family() != peer.family()) return std::nullopt;
  // The kernel looks for the socket that a datagram from the source to the destination comes to.
  const auto told = ask(question_of(IPPROTO_UDP, peer, local));
  return told ? std::optional<uid_t>(told->idiag_uid) : std::nullopt;
}

bool tells_owners() {
  const UniqueFd udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage loopback{};
  const socklen_t length =
      to_socket_address(Address::loopback(AddressFamily::ipv4), AF_INET, loopback);
  if (!udp || ::bind(udp.get(), reinterpret_cast<const sockaddr*>(&loopback), length) != 0)
    return false;
  const Address own = local_address_of(udp.get());
  owner_of_tcp_socket(own, own);
  return owner_of_udp_socket(own, own).has_value();
}

std::optional<uid_t> owner_of_tcp_socket(const Address& local, const Address& peer) {
  if (local.family() != peer.family()) return std::nullopt;
  const auto told = ask(question_of(IPPROTO_TCP, local, peer));
  // Where there is no connection the kernel tells of who listens at that port.
  if (!told || told->idiag_state == TCP_LISTEN) return std::nullopt;
  return told->idiag_uid;
}

}  // namespace diwarp::llp
