// SPDX-License-Identifier: Apache-2.0
#include "soak/datagram_lines.h"

#include <array>
#include <string>

namespace soak {

using namespace std::chrono_literals;
using diwarp::QpState;

void DatagramLines::open(Line& line) {
  diwarp::QueuePairInit init{
      .type = line.type, .send_cq = process_.handles.cq, .recv_cq = process_.handles.cq};
  init.capacity.max_send_wr = kDatagramSends;
  init.capacity.max_recv_wr = kDatagramReceives;
  static constexpr std::array<uint32_t, 4> kSegments{0, 0, 1472, 8972};
  init.datagram.segment = kSegments[process_.random.below(kSegments.size())];
  init.datagram.max_source_memory = size_t{4} << 20;
  init.datagram.connect_after = process_.random.chance(0.5) ? 16 : 1024;
  init.datagram.record_completion = process_.random.chance(0.5)
                                        ? diwarp::RecordCompletion::complete
                                        : diwarp::RecordCompletion::last_segment;
  init.datagram.read.retries = static_cast<uint32_t>(process_.random.below(4));
  init.reliable.max_buffer = size_t{8} << 20;
  init.reliable.peer_timeout = process_.random.chance(0.5) ? 10s : 3s;
  init.reliable.idle_timeout = process_.random.chance(0.5) ? 60s : 2s;
  init.reliable.receive_window = process_.random.chance(0.5) ? 1024 : 64;
  init.reliable.completion_order = process_.random.chance(0.5) ? diwarp::CompletionOrder::posting
                                                               : diwarp::CompletionOrder::peer;
  try {
    line.qp.emplace(process_.handles.pd, init);
    ++line.opened;
    enter(line, Line::State::up, process_.clock.now());
    posting_.post_receives(line);
  } catch (const std::exception&) {
    line.qp.reset();
    enter(line, Line::State::down, process_.clock.now());
    process_.ledger.count("limited.queue-pair");
  }
}

void DatagramLines::keep(Line& line) {
  if (!line.qp) {
    if (process_.clock.now() - line.since < kRetry) return;
    open(line);
    return announce();
  }
  if (line.qp->state() == QpState::rts) return posting_.post_receives(line);
  if (line.state != Line::State::ending) enter(line, Line::State::ending, process_.clock.now());
  if (line.sends + line.receives != 0) return;
  process_.ledger.count("recovered." + std::string(to_string(line.type)));
  renew(line);
}

void DatagramLines::renew(Line& line) {
  line.qp->modify(QpState::reset);
  completions_.drop_all(line);
  line.qp->modify(QpState::init);
  line.qp->modify(QpState::rts);
  ++line.opened;
  process_.forget_heard(line.type);
  enter(line, Line::State::up, process_.clock.now());
  posting_.post_receives(line);
}

void DatagramLines::announce() {
  const auto text = [](const Line& line) {
    return line.qp ? line.qp->address().to_string() : std::string("0.0.0.0:0");
  };
  Ledger::print("ready " + process_.handles.listener.local_address().to_string() + " " +
                text(process_.lines[0]) + " " + text(process_.lines[1]));
}

}  // namespace soak
