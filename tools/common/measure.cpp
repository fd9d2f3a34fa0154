// SPDX-License-Identifier: Apache-2.0
#include "common/measure.h"

#include <algorithm>
#include <thread>

#include "common/failure.h"
#include "common/hints.h"
#include "common/pairing.h"
#include "common/processes.h"
#include "common/socket.h"

namespace diwarp::tools {
namespace {

/// In a loopback the other ends take the next processors.
int processor_of_other(const Ends& ends, uint32_t other) {
  if (ends.cpu < 0) return ends.cpu;
  return static_cast<int>((static_cast<unsigned>(ends.cpu) + 1 + other) %
                          std::max(std::thread::hardware_concurrency(), 1u));
}

int client_processor(const Ends& ends, const Terms& terms) {
  return ends.shown_at_server() ? processor_of_other(ends, terms.client) : ends.cpu;
}

int server_processor(const Ends& ends) {
  return ends.shown_at_server() ? ends.cpu : processor_of_other(ends, 0);
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
  options.udp_segmentation = ends.segmentation;
  options.udp_coalescing = ends.coalescing;
  Device device = ends.device.open(address, options);
  check_device(device, ends.device, operation);
  return device;
}

/// Tells in a row what DIWARP_IMPAIR did to the datagrams of this end since the last one.
class ImpairmentCount {
 public:
  explicit ImpairmentCount(const Device& device) : device_(device) {}

  void add_to(Json& row) {
    const uint64_t offered = device_.counter("impaired_offered");
    const uint64_t dropped = device_.counter("impaired_dropped");
    if (offered != 0)
      row["impaired"] = {{"offered", offered - offered_}, {"dropped", dropped - dropped_}};
    offered_ = offered;
    dropped_ = dropped;
  }

 private:
  const Device& device_;
  uint64_t offered_ = 0;
  uint64_t dropped_ = 0;
};

/// Runs `end`; what makes it fail says why that may be, as far as this end knows. Where the peer
/// has gone, that is all there is to say.
void explained(LossWatch& watch, const std::function<void()>& end) {
  try {
    end();
  } catch (const PeerGone&) {
    throw;
  } catch (const LinkDown& broken) {
    throw LinkDown(with_hints(broken.what(), watch.hints()));
  } catch (const Failure& failure) {
    throw Failure(with_hints(failure.what(), watch.hints()));
  }
}

/// The hints that a message, or a row, has.
std::vector<std::string> hints_in(const Json& message) {
  constexpr size_t kMostHints = 32;
  std::vector<std::string> hints;
  const Json found = message.value("hints", Json::array());
  for (const Json& hint : found)
    if (hint.is_string() && hints.size() < kMostHints) hints.push_back(hint.get<std::string>());
  return hints;
}

bool lost_some(const Json& row) {
  const auto lost = row.find("lost");
  return lost != row.end() && lost->is_number_unsigned() && lost->get<uint64_t>() != 0;
}

/// What both ends know of what got lost of a row's messages. Where nothing did, it is not asked
/// why, and nothing is said.
std::vector<std::string> add_hints(std::vector<Json>& rows, LossWatch& watch, const Peers& peers) {
  peers.send({{"type", "why"}});
  std::vector<std::string> hints;
  for (const std::string& ours : watch.hints()) hints.push_back("At the client: " + ours);
  for (Control& control : peers)
    for (const std::string& theirs : hints_in(control.expect("hints")))
      hints.push_back("At the server: " + theirs);
  if (hints.empty() || std::ranges::none_of(rows, lost_some)) return {};
  for (Json& row : rows)
    if (lost_some(row)) row["hints"] = hints;
  return hints;
}

/// The server's part of that.
void tell_hints(LossWatch& watch, const Peers& peers) {
  const std::vector<std::string> hints = watch.hints();
  for (Control& control : peers) {
    control.expect("why");
    control.send({{"type", "hints"}, {"hints", hints}});
  }
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

void Verdict::pronounce(const std::vector<std::string>& why) const {
  if (!message_.empty()) throw Failure(with_hints(message_, why));
}

std::vector<Json> rows_in(const Json& done) {
  const auto found = done.find("rows");
  const bool usable = found != done.end() && found->is_array() &&
                      std::ranges::all_of(*found, [](const Json& row) { return row.is_object(); });
  if (!usable)
    throw Failure("The peer sent no usable rows: both ends must be of the same version.");
  return {found->begin(), found->end()};
}

void run_measurement(const std::string& tool, const Ends& ends, const Measure& measure,
                     Caption caption, const std::vector<Column>& columns, const Verdict& verdict,
                     const RowPlays& plays) {
  // A server fails at once, not with its first peer. A loopback forks, and has no device before.
  if (ends.role == Role::server) ends.device.check_name();
  Report report(tool, caption, columns, ends.json_file, ends.csv_file);
  Terms terms{.transport = measure.transport,
              .operation = measure.operation,
              .verify = measure.verify,
              .segment = measure.segment,
              .completion = measure.completion,
              .congestion = measure.congestion,
              .streams = measure.streams,
              .bidirectional = measure.bidirectional,
              .rows = measure.sizes.size()};
  const auto client = [&](const Peers& peers) {
    Device device = open_device(ends, local_address(peers), measure.operation);
    const uint64_t theirs = least_buffer(peers);
    const uint64_t ours = granted_receive_buffer(device.address(), ends.udp_buffer);
    terms.receive_buffer = measure.operation == Operation::read ? ours : theirs;
    // The RNIC thread is there already and stays free to run elsewhere.
    bind_to_processor(client_processor(ends, terms));
    ImpairmentCount impairment(device);
    LossWatch watch(device, ends.udp_buffer);
    std::vector<std::string> why;  // of the first row that lost something
    explained(watch, [&] {
      for (uint64_t size : measure.sizes) {
        std::vector<Json> rows = plays.client(device, peers, terms, size);
        const std::vector<std::string> hints = add_hints(rows, watch, peers);
        if (why.empty()) why = hints;
        if (ends.shown_at_server()) continue;
        if (!rows.empty()) impairment.add_to(rows.front());
        for (const Json& row : rows) report.add(row);
      }
    });
    verdict.pronounce(why);
  };
  const auto server = [&](const Peers& peers, const std::vector<Terms>& all) {
    Device device = open_device(ends, peers.front().local_address(), all.front().operation);
    for (const Terms& theirs : all) check_device(device, ends.device, theirs.operation);
    const uint64_t buffer = granted_receive_buffer(device.address(), ends.udp_buffer);
    peers.send({{"type", "buffer"}, {"bytes", buffer}});
    bind_to_processor(server_processor(ends));
    LossWatch watch(device, ends.udp_buffer);
    explained(watch, [&] {
      for (uint64_t size = 0; size < all.front().rows; ++size) {
        const std::vector<Json> rows = plays.server(device, peers, all);
        tell_hints(watch, peers);
        if (!ends.shown_at_server()) continue;
        for (const Json& row : rows) report.add(row);
      }
    });
  };
  run_session(tool, ends, terms, {.client = client, .server = server});
  report.finish();
}

}  // namespace diwarp::tools
