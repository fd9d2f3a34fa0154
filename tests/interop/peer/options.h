// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol.h"

namespace interop {

/// The command line of a peer; see options.cpp for the names.
struct Options {
  bool server = false;
  std::string address;
  std::string device;  ///< diwarp's name of it; empty: on `address`, or a client's on 127.0.0.1
  uint16_t port = 7174;
  std::vector<uint16_t> ports;  ///< parallel client: its connections take these in turn

  // The steps, of the client's choice: all operations with all actors in all sizes.
  std::vector<Op> ops{Op::send};
  std::vector<Actor> actors{Actor::client};
  std::vector<uint32_t> sizes{64};
  uint32_t rounds = 1;
  Fault fault = Fault::none;

  uint32_t connections = 1;
  bool parallel = false;  ///< client: all of them at once, none ends before the last has begun
  uint32_t dials = 1000;  ///< parallel client: so many may be connecting at a time
  uint32_t private_data = 0;
  uint32_t rejects = 0;        ///< server: so many requests are rejected first
  bool expect_reject = false;  ///< client
  bool greet = false;          ///< the server speaks first
  bool expect_end = false;     ///< the other side will break the connection
  uint32_t die_after = 0;      ///< exits in the midst of this step, 1 the first; 0: never

  // The memory of each side: `receives` slots of `slot_size`.
  uint32_t receives = 4;
  size_t slot_size = size_t{1} << 20;
  std::chrono::milliseconds timeout{20000};  ///< of any one wait
  uint32_t limit = 120;                      ///< seconds for all

  std::string source;      ///< libibverbs' client: connect from this address; empty: from any
  bool tells_all = false;  ///< of libibverbs' device: see Endpoint::tells_all()

  // MPA, and what a diwarp peer alone can choose: siw's are module parameters.
  bool crc = true;
  uint8_t revision = 2;
  bool peer_to_peer = false;
  bool markers = false;
  uint8_t depth = 8;  ///< ORD and IRD
};

/// False if the program is to end, with `status`.
bool parse_options(int argc, char** argv, Options& options, int& status);

}  // namespace interop
