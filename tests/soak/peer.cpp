// SPDX-License-Identifier: Apache-2.0
#include "soak/peer.h"

#include <algorithm>
#include <string>
#include <utility>

namespace soak {

namespace {

constexpr double kKeepEvery = 0.02;  // seconds between two looks at queue pairs and offers

/// Every operation and every change of a queue pair ends within the bound.
void find_stuck(Process& process) {
  for (Request& request : process.requests.places()) {
    if (request.id == 0) continue;
    Line& line = process.lines[request.line];
    // A receive waits for a message, unless its queue pair has ended.
    if (request.operation == Operation::receive && line.state != Line::State::ending) continue;
    const double since = request.operation == Operation::receive ? line.since : request.posted;
    if (process.clock.now() - since < process.settings.stuck) continue;
    process.ledger.finding(
        "stuck", std::string(to_string(line.type)) + ": " +
                     std::string(to_string(request.operation)) + " of " +
                     std::to_string(request.buffer.bytes().size()) + " bytes to process " +
                     std::to_string(request.remote) + " is not done after " +
                     std::to_string(process.clock.now() - since) + " s; " + describe(line));
    request.posted = line.since = process.clock.now() + 1e9;
  }
  for (Line& line : process.lines) {
    if ((line.state != Line::State::ending && line.state != Line::State::connecting) ||
        process.clock.now() - line.since < process.settings.stuck)
      continue;
    process.ledger.finding(
        "stuck", std::string(to_string(line.type)) + ": a queue pair is " +
                     (line.state == Line::State::ending ? "ending" : "connecting") + " after " +
                     std::to_string(process.clock.now() - line.since) + " s, with " +
                     std::to_string(line.sends + line.receives) + " requests; " + describe(line));
    line.since = process.clock.now() + 1e9;
  }
}

}  // namespace

Peer::Peer(const Settings& settings)
    : process_(settings),
      posting_(process_),
      offers_(process_, posting_),
      borrowed_(process_),
      completions_(process_, offers_, borrowed_),
      lines_(process_, posting_, offers_, completions_),
      traffic_(process_, posting_, borrowed_),
      orders_(process_, offers_, borrowed_) {}

int Peer::run() {
  process_.clock.start();
  lines_.open();
  while (!orders_.done()) {
    tick();
    orders_.read_input();
    lines_.take_events();
    if (!process_.ending) traffic_.post_some();
    completions_.take_all();
    if (process_.clock.wall() < next_keep_) continue;
    next_keep_ = process_.clock.wall() + kKeepEvery;
    lines_.keep();
    offers_.keep();
    if (!process_.ending) lines_.disturb();
    find_stuck(process_);
    if (process_.clock.round_over()) close_round();
  }
  close_round();
  return 0;
}

void Peer::tick() {
  process_.clock.tick(std::any_of(process_.remotes.begin(), process_.remotes.end(),
                                  [](const Remote& remote) { return remote.paused; }));
}

void Peer::close_round() {
  process_.faults.harm_process();
  process_.clock.end_round();
  if (process_.arena.overruns() != overruns_) {
    overruns_ = process_.arena.overruns();
    process_.ledger.finding("wrong-byte",
                            "something was written behind the end of an operation's memory");
  }
  double oldest = process_.clock.now();
  size_t posted = 0;
  for (const Request& request : process_.requests.places()) {
    if (request.id == 0 || request.operation == Operation::receive) continue;
    oldest = std::min(oldest, request.posted);
    ++posted;
  }
  nlohmann::json line{{"round", process_.clock.rounds()},
                      {"seconds", process_.clock.wall()},
                      {"ran", process_.clock.now()},
                      {"posted", posted},
                      {"oldest", process_.clock.now() - oldest},
                      {"ending", process_.ending}};
  if (orders_.done() || process_.clock.rounds() % 10 == 0) {
    auto& counters = line["counters"];
    for (const diwarp::CounterValue& counter : process_.handles.device.counters()) {
      if (counter.value != 0) counters[std::string(counter.name)] = counter.value;
    }
  }
  process_.ledger.round(std::move(line));
}

}  // namespace soak
