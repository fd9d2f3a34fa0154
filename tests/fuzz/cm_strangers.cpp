// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cm_strangers.h"

#include <sys/socket.h>

#include <vector>

namespace diwarp::fuzz {

void CmStrangers::act() {
  UniqueFd& stranger = strangers_[run_.in.below(kStrangers)];
  if (stranger) {
    const std::vector<std::byte> bytes = run_.in.bytes(run_.in.below(40));
    run_.stranger_spoke = true;
    ::send(stranger.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (run_.in.flag()) stranger.reset();
    return;
  }
  const Address to = run_.any_address();
  if (to.family() != AddressFamily::ipv4 || to.host() == "198.51.100.1") return;
  stranger = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage name;
  const socklen_t length = to.to_sockaddr(name);
  if (::connect(stranger.get(), reinterpret_cast<sockaddr*>(&name), length) != 0)
    return stranger.reset();
  if (run_.in.flag()) return;
  static constexpr char kRequest[] = "MPA ID Req Frame\x50\x02\x00\x04\xc0\x01\xc0\x01";
  run_.stranger_spoke = true;
  ::send(stranger.get(), kRequest, sizeof kRequest - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace diwarp::fuzz
