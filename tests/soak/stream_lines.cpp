// SPDX-License-Identifier: Apache-2.0
#include "soak/stream_lines.h"

#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace soak {

using diwarp::CmEventType;
using diwarp::QpState;
using diwarp::QpType;

namespace {

/// What the private data of a connection say.
struct Greeting {
  uint32_t index = 0;
  uint32_t life = 0;
  uint32_t peer_life = 0;  ///< of the process that is asked
};

}  // namespace

void StreamLines::keep(Line& line) {
  const bool can_begin =
      line.remote > process_.settings.index && process_.remotes[line.remote].life != 0;
  switch (line.state) {
    case Line::State::down:
      if (!process_.ending && can_begin && process_.clock.now() - line.since >= kRetry)
        begin_connection(line);
      return;
    case Line::State::connecting:
      return;
    case Line::State::up:
      if (line.qp->state() == QpState::error || line.qp->state() == QpState::closing) {
        return enter(line, Line::State::ending, process_.clock.now());
      }
      return posting_.post_receives(line);
    case Line::State::ending:
      if (line.qp->state() == QpState::error && line.sends + line.receives == 0) close(line);
  }
}

void StreamLines::take_events() {
  for (int i = 0; i < 16; ++i) {
    std::optional<diwarp::CmEvent> event = process_.handles.channel.get_event(diwarp::Duration(0));
    if (!event) return;
    take_event(std::move(*event));
  }
}

Line* StreamLines::line_of(uint64_t id_number) {
  for (Line& line : process_.lines) {
    if (line.id && line.id->number() == id_number) return &line;
  }
  return nullptr;
}

void StreamLines::take_event(diwarp::CmEvent event) {
  if (event.type == CmEventType::connect_request) return answer(event);
  Line* line = line_of(event.id);
  if (line == nullptr) return;
  switch (event.type) {
    case CmEventType::addr_resolved: {
      const Greeting greeting{process_.settings.index, process_.settings.life, line->remote_life};
      diwarp::ConnectOptions options;
      options.private_data = std::as_bytes(std::span(&greeting, 1));
      options.crc = process_.random.chance(0.7);
      options.markers = process_.random.chance(0.2);
      options.ord = options.ird = process_.random.chance(0.5) ? 16 : 2;
      return line->id->connect(*line->qp, options);
    }
    case CmEventType::established:
      process_.ledger.count("connections");
      return enter(*line, Line::State::up, process_.clock.now());
    case CmEventType::disconnected:
      if (line->state != Line::State::ending)
        enter(*line, Line::State::ending, process_.clock.now());
      return;
    case CmEventType::addr_error:
    case CmEventType::rejected:
    case CmEventType::unreachable:
    case CmEventType::connect_error:
      process_.ledger.count("refused.connection");
      line->qp->modify(QpState::error);  // reports the receives
      return enter(*line, Line::State::ending, process_.clock.now());
    default:
      return;
  }
}

void StreamLines::open(Line& line, uint32_t remote) {
  diwarp::QueuePairInit init{
      .type = QpType::rc, .send_cq = process_.handles.cq, .recv_cq = process_.handles.cq};
  init.capacity.max_send_wr = kStreamSends;
  init.capacity.max_recv_wr = kStreamReceives;
  init.stream.max_fpdu = process_.random.chance(0.5) ? 0 : 1024;
  line.shares = process_.random.chance(0.5);
  if (line.shares) {
    init.recv_cq = process_.handles.shared_cq;
    init.srq = process_.handles.shared;
  }
  line.qp.emplace(process_.handles.pd, init);
  line.remote = remote;
  line.remote_life = process_.remotes[remote].life;
  line.sent = line.heard = line.immediates_sent = line.immediates_heard = 0;
  // A connection begins with no atomic under way, and no window of another is good for it.
  std::erase_if(process_.remotes[remote].lent,
                [](const Lent& lent) { return lent.use == Use::atomic || lent.windowed; });
  posting_.post_receives(line);
}

/// Where the system has no descriptor or memory, it is tried again later.
void StreamLines::connect(Line& line, uint32_t remote, const std::function<void()>& begin) {
  try {
    open(line, remote);
    begin();
    enter(line, Line::State::connecting, process_.clock.now());
  } catch (const std::exception&) {
    process_.ledger.count("limited.connection");
    close(line);
  }
}

void StreamLines::begin_connection(Line& line) {
  connect(line, line.remote, [&] {
    line.id.emplace(process_.handles.device, process_.handles.channel);
    line.id->resolve_addr(process_.remotes[line.remote].addresses[index_of(QpType::rc)]);
  });
}

/// A peer that asks while its last connection still ends is refused, and asks again.
void StreamLines::answer(diwarp::CmEvent& event) {
  Greeting greeting;
  if (event.private_data.size() == sizeof greeting)
    std::memcpy(&greeting, event.private_data.data(), sizeof greeting);
  const bool known = greeting.life != 0 && greeting.index < kMostPeers &&
                     greeting.peer_life == process_.settings.life &&
                     process_.remotes[greeting.index].life == greeting.life;
  if (!known || process_.ending) return event.request->reject();
  Line& line = process_.lines[2 + greeting.index];
  if (line.state == Line::State::up || line.state == Line::State::connecting) {
    line.qp->modify(QpState::error);
    enter(line, Line::State::ending, process_.clock.now());
  }
  if (line.state != Line::State::down) return event.request->reject();
  connect(line, greeting.index, [&] {
    line.id = std::move(event.request);
    diwarp::AcceptOptions options;
    options.crc = process_.random.chance(0.7);
    line.id->accept(*line.qp, options);
  });
}

/// Another queue pair may have its number next, so the shared receives that it has taken are looked
/// at before.
void StreamLines::close(Line& line) {
  line.id.reset();
  line.qp.reset();
  line.shares = false;
  completions_.take_from(process_.handles.shared_cq, diwarp::Duration(0));
  completions_.drop_all(line);
  offers_.end_windows(line.remote);
  enter(line, Line::State::down, process_.clock.now());
}

}  // namespace soak
