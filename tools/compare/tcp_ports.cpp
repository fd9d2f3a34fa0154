// SPDX-License-Identifier: Apache-2.0
#include "compare/tcp_ports.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "common/interrupt.h"
#include "common/socket.h"

namespace diwarp::tools {
namespace {

/// Whether a TCP socket of this host listens on the port (/proc/net/tcp: the second word is the
/// local address, the fourth the state, 0A for LISTEN).
bool is_listened_at(uint16_t port) {
  char wanted[8];
  std::snprintf(wanted, sizeof wanted, ":%04X", port);
  for (const char* name : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      if (local.ends_with(wanted) && state == "0A") return true;
    }
  }
  return false;
}

}  // namespace

uint16_t free_tcp_port(const Address& address) {
  return ControlListener(address.with_port(0)).address().port();
}

bool wait_until_listened_at(uint16_t port, Captured& program, Time deadline) {
  using std::chrono::steady_clock;
  while (!is_listened_at(port)) {
    check_interrupted();
    const bool ended = program.finish(steady_clock::now() + std::chrono::milliseconds(5));
    if (ended || steady_clock::now() > deadline) return false;
  }
  return true;
}

}  // namespace diwarp::tools
