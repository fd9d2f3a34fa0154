// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <diwarp/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What diwarp-run tells these libraries, by the environment (docs/drop-in.md).
namespace diwarp::compat {

/// A device that the user added.
struct NamedDevice {
  std::string name;
  Address address;
};

struct Settings {
  std::vector<NamedDevice> devices;
  Duration spin{0};  ///< of the RNIC thread: a program that spins itself needs the processor more
  int cpu = -1;      ///< -1: the scheduler's choice
  bool reliable_datagrams = false;  ///< UD queue pairs are carried by RD
  uint64_t datagram_rate = 0;       ///< bytes a second of each UD queue pair; 0: no limit
  /// How long a message over RC waits for a receive; zero: it ends the connection. Programs that
  /// were written for InfiniBand rely on its "receiver not ready": they post a receive when they
  /// get to it.
  Duration receive_wait = std::chrono::hours(1);
  bool crc = false;       ///< CRCs also on connections within this host
  bool counters = false;  ///< print the devices' counters at the end of the process
};

/// "NAME=ADDR,NAME=ADDR". Entries that are none are left out.
std::vector<NamedDevice> parse_devices(std::string_view text);
/// "50us", "2ms", "1s", or microseconds; zero where it is none.
Duration parse_duration(std::string_view text);

/// Of this process; read when it is first asked for.
const Settings& settings();

}  // namespace diwarp::compat
