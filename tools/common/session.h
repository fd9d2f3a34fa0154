// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/control.h"
#include "common/operation.h"
#include "common/options.h"

namespace diwarp::tools {

/// The first message of the client to the server: valid for the whole run.
struct Terms {
  QpType transport = QpType::ud;
  Operation operation = Operation::send;
  bool verify = false;
  std::string segment = "mtu";                               ///< as parse_segment() reads it
  RecordCompletion completion = RecordCompletion::complete;  ///< of Write-Records
  CongestionControl congestion = CongestionControl::bbr;     ///< RD
  uint32_t streams = 1;
  bool bidirectional = false;
  uint64_t rows = 0;
  /// Comes back as the private data of every RC connection of the run, so that a stranger who
  /// connects meanwhile is not taken for the client.
  uint64_t token = 0;
  /// Known to the client only: what the receive buffer of the UDP sockets holds where the messages
  /// arrive.
  uint64_t receive_buffer = 0;
  /// The server's word: how many clients it serves at the same time, and which of them this is.
  uint32_t clients = 1;
  uint32_t client = 0;
};

/// The two ends of a tool. The client decides, the server follows. Each is called in its own
/// process, with the control connection after the greeting; the client of a group with one to each
/// receiver, the server of several clients with one to each.
struct Plays {
  std::function<void(Peers)> client;
  std::function<void(Peers, const std::vector<Terms>&)> server;
};

/// Plays the end that `ends` names, all if it is the loopback: in this process the client, or the
/// server where there are several clients. `terms` are the client's; its token is drawn here.
/// Throws what ended the run: Failure with the reason, Interrupted.
void run_session(const std::string& tool, const Ends& ends, Terms& terms, const Plays& plays);

}  // namespace diwarp::tools
