// SPDX-License-Identifier: Apache-2.0
#include "common/measure.h"

#include <algorithm>
#include <thread>

#include "common/failure.h"
#include "common/pairing.h"
#include "common/processes.h"
#include "common/socket.h"

namespace diwarp::tools {
namespace {

/// In a loopback the server's end takes the next processor.
int server_processor(const Ends& ends) {
  if (ends.cpu < 0 || ends.role == Role::server) return ends.cpu;
  return static_cast<int>((static_cast<unsigned>(ends.cpu) + 1) %
                          std::max(std::thread::hardware_concurrency(), 1u));
}

/// Where this end's device is unless the user chose another. Every receiver of a group is to answer
/// to the same one.
Address local_address(const Peers& peers) {
  const Address local = peers.front().local_address().with_port(0);
  for (Control& control : peers) {
    if (control.local_address().with_port(0) == local) continue;
    throw Failure("The servers are reached from " + local.host() + " and from " +
                  control.local_address().host() + ": a group needs one network.");
  }
  return local;
}

Device open_device(const Ends& ends, const Address& address, Operation operation) {
  DeviceOptions options;
  options.udp_receive_buffer = ends.udp_buffer;
  options.io = ends.io;
  options.zerocopy_from = ends.zerocopy_from;
  Device device = ends.device.open(address, options);
  check_device(device, ends.device, operation);
  return device;
}

uint64_t least_buffer(const Peers& peers) {
  uint64_t least = UINT64_MAX;
  for (Control& control : peers) {
    least = std::min(least, number_in(control.expect("buffer"), "bytes", 0, UINT64_MAX));
  }
  return least;
}

}  // namespace

void Verdict::fail(const std::string& message) {
  if (message_.empty()) message_ = message;
}

void Verdict::check_loss(uint64_t lost, uint64_t sent, uint64_t size, double max_percent) {
  if (100 * static_cast<double>(lost) <= max_percent * static_cast<double>(sent)) return;
  fail(std::to_string(lost) + " of " + std::to_string(sent) + " messages of " +
       std::to_string(size) + " bytes got lost, more than --max-loss allows.");
}

void Verdict::pronounce() const {
  if (!message_.empty()) throw Failure(message_);
}

void run_measurement(const std::string& tool, const Ends& ends, const Measure& measure,
                     const std::vector<Column>& columns, const Verdict& verdict,
                     const RowPlays& plays) {
  // A server fails at once, not with its first peer. A loopback forks, and has no device before.
  if (ends.role == Role::server) ends.device.check_name();
  Report report(columns, ends.json_file, ends.csv_file);
  Terms terms{.transport = measure.transport,
              .operation = measure.operation,
              .verify = measure.verify,
              .segment = measure.segment,
              .rows = measure.sizes.size()};
  const auto client = [&](const Peers& peers) {
    Device device = open_device(ends, local_address(peers), measure.operation);
    const uint64_t theirs = least_buffer(peers);
    const uint64_t ours = granted_receive_buffer(device.address(), ends.udp_buffer);
    terms.receive_buffer = measure.operation == Operation::read ? ours : theirs;
    // The RNIC thread is there already and stays free to run elsewhere.
    bind_to_processor(ends.cpu);
    for (uint64_t size : measure.sizes) {
      for (const Json& row : plays.client(device, peers, terms, size)) report.add(row);
    }
    verdict.pronounce();
  };
  const auto server = [&](Control& control, const Terms& theirs) {
    Device device = open_device(ends, control.local_address(), theirs.operation);
    const uint64_t buffer = granted_receive_buffer(device.address(), ends.udp_buffer);
    control.send({{"type", "buffer"}, {"bytes", buffer}});
    bind_to_processor(server_processor(ends));
    for (uint64_t row = 0; row < theirs.rows; ++row) {
      const Json figures = plays.server(device, control, theirs);
      if (ends.role == Role::server) report.add(figures);
    }
  };
  run_session(tool, ends, terms, {.client = client, .server = server});
}

}  // namespace diwarp::tools
