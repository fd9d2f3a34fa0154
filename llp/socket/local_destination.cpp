// SPDX-License-Identifier: Apache-2.0
#include "llp/socket/local_destination.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "llp/socket/netlink.h"

namespace diwarp::llp {
namespace {

struct Question {
  nlmsghdr header;
  rtmsg route;
  rtattr destination;
  std::array<std::byte, 16> address;
};

}  // namespace

bool is_local_destination(const Address& to) {
  const bool ipv4 = to.family() == AddressFamily::ipv4;
  const size_t bytes = ipv4 ? 4 : 16;
  Question question{};
  question.header.nlmsg_len = static_cast<uint32_t>(offsetof(Question, address) + bytes);
  question.header.nlmsg_type = RTM_GETROUTE;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.route.rtm_family = ipv4 ? AF_INET : AF_INET6;
  question.route.rtm_dst_len = static_cast<unsigned char>(8 * bytes);
  question.destination = {.rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes)),
                          .rta_type = RTA_DST};
  std::memcpy(question.address.data(), to.bytes().data(), bytes);
  std::array<std::byte, 1024> answer;
  const ConstBytes all(reinterpret_cast<const std::byte*>(&question), question.header.nlmsg_len);
  const ConstBytes told = ask_netlink(NETLINK_ROUTE, all, answer);
  if (told.size() < NLMSG_LENGTH(sizeof(rtmsg))) return false;
  nlmsghdr header;
  rtmsg route;
  std::memcpy(&header, told.data(), sizeof header);
  std::memcpy(&route, told.data() + NLMSG_HDRLEN, sizeof route);
  return header.nlmsg_type == RTM_NEWROUTE && route.rtm_type == RTN_LOCAL;
}

}  // namespace diwarp::llp
