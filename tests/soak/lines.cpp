// SPDX-License-Identifier: Apache-2.0
/// Queue pairs: how they come, go, and recover.
#include <cstring>

#include "soak/peer.h"

namespace soak {

using namespace std::chrono_literals;
using diwarp::CmEventType;
using diwarp::QpState;
using diwarp::QpType;

namespace {

constexpr uint32_t kDatagramReceives = 64;
constexpr uint32_t kStreamReceives = 16;
constexpr uint32_t kDatagramSends = 64;
constexpr uint32_t kStreamSends = 64;
constexpr double kRetry = 0.3;  // seconds until a connection is tried again

/// What the private data of a connection say.
struct Greeting {
  uint32_t index = 0;
  uint32_t life = 0;
  uint32_t peer_life = 0;  ///< of the process that is asked
};

}  // namespace

void Peer::enter(Line& line, Line::State state) {
  line.state = state;
  line.since = now_;
}

/// Where the system has no descriptor or memory, it is tried again later.
void Peer::open_datagrams(Line& line) {
  diwarp::QueuePairInit init{.type = line.type, .send_cq = cq_, .recv_cq = cq_};
  init.capacity.max_send_wr = kDatagramSends;
  init.capacity.max_recv_wr = kDatagramReceives;
  static constexpr std::array<uint32_t, 4> kSegments{0, 0, 1472, 8972};
  init.datagram.segment = kSegments[random_.below(kSegments.size())];
  init.datagram.max_source_memory = size_t{4} << 20;
  init.datagram.connect_after = random_.chance(0.5) ? 16 : 1024;
  init.datagram.record_completion = random_.chance(0.5) ? diwarp::RecordCompletion::complete
                                                        : diwarp::RecordCompletion::last_segment;
  init.datagram.read.retries = static_cast<uint32_t>(random_.below(4));
  init.reliable.max_buffer = size_t{8} << 20;
  init.reliable.peer_timeout = random_.chance(0.5) ? 10s : 3s;
  init.reliable.idle_timeout = random_.chance(0.5) ? 60s : 2s;
  init.reliable.receive_window = random_.chance(0.5) ? 1024 : 64;
  init.reliable.completion_order =
      random_.chance(0.5) ? diwarp::CompletionOrder::posting : diwarp::CompletionOrder::peer;
  try {
    line.qp.emplace(pd_, init);
    ++line.opened;
    enter(line, Line::State::up);
    post_receives(line);
  } catch (const std::exception&) {
    line.qp.reset();
    enter(line, Line::State::down);
    ledger_.count("limited.queue-pair");
  }
}

/// A queue pair in error reports everything; then it is made ready again, or anew.
void Peer::keep_datagrams(Line& line) {
  if (!line.qp) {
    if (now_ - line.since < kRetry) return;
    open_datagrams(line);
    return announce();
  }
  if (line.qp->state() == QpState::rts) return post_receives(line);
  if (line.state != Line::State::ending) enter(line, Line::State::ending);
  if (line.sends + line.receives != 0) return;
  ledger_.count("recovered." + std::string(to_string(line.type)));
  renew(line);
}

/// A queue pair that was reset is another source to its peers.
void Peer::renew(Line& line) {
  line.qp->modify(QpState::reset);
  drop_all(line);
  line.qp->modify(QpState::init);
  line.qp->modify(QpState::rts);
  ++line.opened;
  forget_heard(line.type);
  enter(line, Line::State::up);
  post_receives(line);
}

void Peer::keep_stream(Line& line) {
  const bool can_begin = line.remote > settings_.index && remotes_[line.remote].life != 0;
  switch (line.state) {
    case Line::State::down:
      if (!ending_ && can_begin && now_ - line.since >= kRetry) begin_connection(line);
      return;
    case Line::State::connecting:
      return;
    case Line::State::up:
      if (line.qp->state() == QpState::error || line.qp->state() == QpState::closing) {
        return enter(line, Line::State::ending);
      }
      return post_receives(line);
    case Line::State::ending:
      if (line.qp->state() == QpState::error && line.sends + line.receives == 0) close_stream(line);
  }
}

/// What an application may do to its queue pairs at any time.
void Peer::disturb() {
  if (!random_.chance(0.01)) return;
  Line& line = lines_[random_.below(lines_.size())];
  if (!line.qp || line.state != Line::State::up) return;
  const std::string type(to_string(line.type));
  switch (random_.below(4)) {
    case 0:
      ledger_.count("disturbed.error." + type);
      line.qp->modify(QpState::error);
      return enter(line, Line::State::ending);
    case 1:
      if (line.id) {
        ledger_.count("disturbed.disconnect");
        line.id->disconnect();
        return enter(line, Line::State::ending);
      }
      ledger_.count("disturbed.reset." + type);
      return renew(line);
    case 2:
      if (line.id) return;
      ledger_.count("disturbed.anew." + type);
      line.qp.reset();
      drop_all(line);
      forget_heard(line.type);
      open_datagrams(line);
      return announce();
    default:
      if (!line.id) return;
      ledger_.count("disturbed.destroyed.RC");
      return close_stream(line);
  }
}

/// Nothing of what is posted will be reported any more.
void Peer::drop_all(Line& line) {
  for (Request& request : requests_.places()) {
    if (request.id == 0 || request.line != line.place) continue;
    check_withdrawn(request);
    release_reader(request);
    note_failed(request);
    if (request.operation == Operation::bind_window) window_bound(request.offer, false);
    requests_.drop(request);
  }
  line.sends = line.receives = 0;
}

/// Numbers of messages begin anew: nothing is known of those before.
void Peer::forget_heard(QpType type) {
  for (Remote& remote : remotes_) remote.heard[index_of(type)] = {};
}

void Peer::post_receives(Line& line) {
  const bool shared = line.place == kSharedPlace;
  if (line.shares) return;
  const uint32_t of_own = line.type == QpType::rc ? kStreamReceives : kDatagramReceives;
  while (line.receives < (shared ? kSharedReceives : of_own)) {
    Request* request =
        prepare(line, line.remote, Operation::receive, kReceiveSize, diwarp::Access::local_write);
    if (request == nullptr) return;
    const diwarp::Sge sge = request->buffer.region().sge();
    const diwarp::ReceiveWorkRequest wr{.wr_id = request->id, .sges = sge};
    if (shared ? shared_.post_recv(wr) : line.qp->post_recv(wr)) return requests_.release(*request);
    ++line.receives;
  }
}

void Peer::take_events() {
  for (int i = 0; i < 16; ++i) {
    std::optional<diwarp::CmEvent> event = channel_.get_event(diwarp::Duration(0));
    if (!event) return;
    take_event(std::move(*event));
  }
}

Line* Peer::line_of(uint64_t id_number) {
  for (Line& line : lines_) {
    if (line.id && line.id->number() == id_number) return &line;
  }
  return nullptr;
}

void Peer::take_event(diwarp::CmEvent event) {
  if (event.type == CmEventType::connect_request) return answer(event);
  Line* line = line_of(event.id);
  if (line == nullptr) return;
  switch (event.type) {
    case CmEventType::addr_resolved: {
      const Greeting greeting{settings_.index, settings_.life, line->remote_life};
      diwarp::ConnectOptions options;
      options.private_data = std::as_bytes(std::span(&greeting, 1));
      options.crc = random_.chance(0.7);
      options.markers = random_.chance(0.2);
      options.ord = options.ird = random_.chance(0.5) ? 16 : 2;
      return line->id->connect(*line->qp, options);
    }
    case CmEventType::established:
      ledger_.count("connections");
      return enter(*line, Line::State::up);
    case CmEventType::disconnected:
      if (line->state != Line::State::ending) enter(*line, Line::State::ending);
      return;
    case CmEventType::addr_error:
    case CmEventType::rejected:
    case CmEventType::unreachable:
    case CmEventType::connect_error:
      ledger_.count("refused.connection");
      line->qp->modify(QpState::error);  // reports the receives
      return enter(*line, Line::State::ending);
    default:
      return;
  }
}

void Peer::open_stream(Line& line, uint32_t remote) {
  diwarp::QueuePairInit init{.type = QpType::rc, .send_cq = cq_, .recv_cq = cq_};
  init.capacity.max_send_wr = kStreamSends;
  init.capacity.max_recv_wr = kStreamReceives;
  init.stream.max_fpdu = random_.chance(0.5) ? 0 : 1024;
  line.shares = random_.chance(0.5);
  if (line.shares) {
    init.recv_cq = shared_cq_;
    init.srq = shared_;
  }
  line.qp.emplace(pd_, init);
  line.remote = remote;
  line.remote_life = remotes_[remote].life;
  line.sent = line.heard = line.immediates_sent = line.immediates_heard = 0;
  // A connection begins with no atomic under way, and no window of another is good for it.
  std::erase_if(remotes_[remote].lent,
                [](const Lent& lent) { return lent.use == Use::atomic || lent.windowed; });
  post_receives(line);
}

/// Where the system has no descriptor or memory, it is tried again later.
void Peer::connect_stream(Line& line, uint32_t remote, const std::function<void()>& begin) {
  try {
    open_stream(line, remote);
    begin();
    enter(line, Line::State::connecting);
  } catch (const std::exception&) {
    ledger_.count("limited.connection");
    close_stream(line);
  }
}

void Peer::begin_connection(Line& line) {
  connect_stream(line, line.remote, [&] {
    line.id.emplace(device_, channel_);
    line.id->resolve_addr(remotes_[line.remote].addresses[index_of(QpType::rc)]);
  });
}

/// A peer that asks while its last connection still ends is refused, and asks again.
void Peer::answer(diwarp::CmEvent& event) {
  Greeting greeting;
  if (event.private_data.size() == sizeof greeting)
    std::memcpy(&greeting, event.private_data.data(), sizeof greeting);
  const bool known = greeting.life != 0 && greeting.index < kMostPeers &&
                     greeting.peer_life == settings_.life &&
                     remotes_[greeting.index].life == greeting.life;
  if (!known || ending_) return event.request->reject();
  Line& line = lines_[2 + greeting.index];
  if (line.state == Line::State::up || line.state == Line::State::connecting) {
    line.qp->modify(QpState::error);
    enter(line, Line::State::ending);
  }
  if (line.state != Line::State::down) return event.request->reject();
  connect_stream(line, greeting.index, [&] {
    line.id = std::move(event.request);
    diwarp::AcceptOptions options;
    options.crc = random_.chance(0.7);
    line.id->accept(*line.qp, options);
  });
}

/// Its connection, queue pair and all that is posted to it go. Another queue pair may have its
/// number next, so the shared receives that it has taken are looked at before.
void Peer::close_stream(Line& line) {
  line.id.reset();
  line.qp.reset();
  line.shares = false;
  take_from(shared_cq_, diwarp::Duration(0));
  drop_all(line);
  end_windows(line.remote);
  enter(line, Line::State::down);
}

}  // namespace soak
