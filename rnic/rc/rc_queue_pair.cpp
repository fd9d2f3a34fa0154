// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_queue_pair.h"

#include <algorithm>
#include <string>
#include <utility>

#include "diwarp/error.h"
#include "rdmap/request_checks.h"
#include "rnic/engine/attach.h"
#include "rnic/rc/rc_state.h"

namespace diwarp::rnic {

namespace {

constexpr uint32_t kMinFpdu = 128;
constexpr uint32_t kMaxFpdu = 65536;

const StreamOptions& checked(const StreamOptions& options) {
  if (options.max_fpdu != 0) check_range("max_fpdu", options.max_fpdu, kMinFpdu, kMaxFpdu);
  if (options.receive_wait <= Duration::zero())
    throw Error(make_error_code(Errc::invalid_argument),
                "receive_wait must be above zero; ReceiveNotReady::terminate does not wait");
  check_timeouts({options.keep_alive, options.user_timeout});
  return options;
}

}  // namespace

RcQueuePair::RcQueuePair(std::shared_ptr<ProtectionDomain> domain,
                         const provider::QueuePairInit& init)
    : QueuePair(std::move(domain), init),
      number_(*device(), init.number),
      options_(checked(init.stream)),
      stream_(*device(), *this),
      requester_(protection(), sends_),
      responder_(protection()),
      receive_({receives(), protection(), requester_, responder_, &logged()}, counters(),
               init.stream.receive_not_ready),
      peer_watch_(engine().timers(), requester_, *this),
      idle_memory_(engine().timers(), receive_, transmit_, stream_) {
  set_number(number_.get());
  engine().exclusively([this] {
    stream_.attach_none();
    set_state(QpState::init);
  });
}

RcQueuePair::~RcQueuePair() {
  engine().exclusively([this] {
    observers_.observe(nullptr);
    end_meeting();
    if (stream_) {
      tell_end("the queue pair was destroyed");
      close_stream(transmit_.at_boundary());
    }
    receive_.give_back();
    idle_memory_.stop();
    retire();
  });
}

// --- Connecting.

void RcQueuePair::start(NegotiatedConnection connection, QpState to) {
  engine().exclusively([&] { take(std::move(connection), to); });
}

void RcQueuePair::take(NegotiatedConnection connection, QpState to) {
  require_init(state());
  attach(connection);
  set_state(to);
  begin(connection.initiator);
}

void RcQueuePair::await(std::shared_ptr<PendingMeeting> meeting) {
  require_init(state());
  meeting->begin();
  meeting_ = std::move(meeting);
  terminate_.reset();
  set_state(QpState::rtr);
}

/// In rtr, rts or sqd, where it has waited; what was posted meanwhile goes out.
void RcQueuePair::on_met(NegotiatedConnection connection) {
  attach(connection);
  meeting_.reset();
  begin(connection.initiator);
}

void RcQueuePair::on_missed(std::error_code status) {
  meeting_.reset();
  if (sends_.pending() != nullptr) sends_.complete(WcStatus::retry_exceeded);  // guard(meeting)
  enter_error();
  raise(AsyncEventType::qp_fatal, {}, status);  // guard(meeting)
}

/// Without an event to the application.
void RcQueuePair::end_meeting() {
  if (const auto meeting = std::exchange(meeting_, nullptr)) meeting->cancel();
}

/// The connection's parts are ready, and nothing was received or sent.
void RcQueuePair::attach(NegotiatedConnection& connection) {
  stream_.attach(std::move(connection.stream));
  closing_.start();
  terminate_.reset();
  parameters_ = connection.parameters;
  const bool copies = options_.copy_payload && parameters_.crc;
  stream_.allow_zero_copy(parameters_.send_markers || copies);
  if (parameters_.send_markers) stream_->stay_on_wire();
  peer_watch_.start(stream_->peer_probe(),
                    connection.timeouts.over({options_.keep_alive, options_.user_timeout}));
  requester_.start(parameters_.ord);
  responder_.start(parameters_.ird);
  transmit_.start(parameters_, connection.initiator, options_);
  if (connection.initiator && parameters_.ready == ReadyToReceive::read) requester_.begin_ready();
  receive_.start(parameters_, connection.initiator, connection.leftover);
}

void RcQueuePair::begin(bool initiator) {
  counters().add(Counter::rc_connections);
  tell_begin(initiator);
  engine().transmits().activate(*this);
  settle(receive_.resume(), engine().clock().now());
}

void RcQueuePair::tell_begin(bool initiator) {
  log::tell(LogLevel::info, subject(), [&] {
    return std::string(initiator ? "connected to " : "accepted a connection from ") +
           stream_.peer_address().to_string() + ": MPA revision " +
           std::to_string(parameters_.revision) + ", CRC " + (parameters_.crc ? "on" : "off") +
           ", ORD " + std::to_string(parameters_.ord) + ", IRD " + std::to_string(parameters_.ird);
  });
}

// --- Disconnecting.

void RcQueuePair::begin_disconnect() {
  if (state() == QpState::error || state() == QpState::closing) return;
  if (meeting_) return enter_error();  // guard(meeting)
  if (!is_connected(state()))
    throw Error(
        make_error_code(Errc::invalid_state),
        "This queue pair has no connection to end: it is in " + std::string(to_string(state())));
  set_state(QpState::closing);
  // guard(rows:reads-while-closing): => receive_.delivery().discard_unwanted(),
  //     engine().inputs().set_reading(*this, false);
  receive_.delivery().discard_unwanted();
  engine().transmits().activate(*this);
}

void RcQueuePair::give_up_closing() {
  if (state() == QpState::closing) end(RcEnd::lost);
}

void RcQueuePair::abandon() {
  if (is_connected(state())) enter_error();
}

// --- In the engine.

size_t RcQueuePair::receive(Time now) {
  if (!stream_) return 0;
  const bool in_flight = transmit_.zero_copy().in_flight();
  // Memory may have been released: sends that wait for that go on.
  if (in_flight && transmit_.zero_copy().complete_released(*stream_, sends_))
    engine().transmits().activate(*this);
  if (receive_.delivery().held() || closing_.peer_closed()) {
    // Nothing is read, so it is a broken stream that asks, again if need be, or one that has
    // released memory.
    if (!in_flight) end(end_of_stream(stream_->error()));
    return 1;
  }
  const RcEnd result = receive_.read(*stream_, engine().buffers().stream_buffer());
  if (result == RcEnd::none && receive_.came() == 0) return 0;
  settle(result, now);
  return 1;
}

/// Input that is not read now need not be told of.
bool RcQueuePair::set_watched(bool watched) {
  const bool reads = stream_ && !receive_.delivery().held() && !closing_.peer_closed();
  return !reads || stream_->set_watched(watched);
}

llp::RoomNotice RcQueuePair::room_notice() const {
  return stream_ ? stream_->room_notice() : llp::RoomNotice::descriptor;
}

/// Whether a responder need not wait for its initiator.
bool RcQueuePair::may_begin() const {
  return options_.responder_begins && parameters_.ready == ReadyToReceive::none;
}

/// After the receiving half took bytes, or none.
void RcQueuePair::settle(RcEnd result, Time now) {
  if (result != RcEnd::none) {
    const bool goes_on =
        result == RcEnd::closed && closing_.outlasts_peer(state(), transmit_, requester_);
    if (!goes_on) return end(result);
    closing_.set_peer_closed();
  }
  const bool held = receive_.delivery().held();
  if (held || result == RcEnd::closed) {
    engine().inputs().set_reading(*this, false);
    if (held) logged().add(Counter::rc_receive_not_ready, stream_.peer_address());
    if (held || state() != QpState::closing)
      engine().timers().arm(receive_wait_, saturating_add(now, options_.receive_wait));
  }
  if ((receive_.heard() || may_begin()) && !transmit_.messages().allowed()) {
    transmit_.messages().allow();
    observers_.tell_ready();
  }
  // The input may be a request, or the response that others wait for.
  if (transmit_.messages().allowed() &&
      (responder_.next() != nullptr || sends_.pending() != nullptr || state() == QpState::closing ||
       state() == QpState::sqd))
    engine().transmits().activate(*this);
  idle_memory_.used(now);
  if (!report()) engine().transmits().stall(*this);
}

Served RcQueuePair::transmit(Time now) {
  if (stream_ && receive_.delivery().held()) resume_held(now);
  Served served;
  if (stream_)
    served = send(now);
  else
    go_on_unconnected();
  if (report()) return served;
  if (served.pending == Pending::nothing) served.pending = Pending::stalled;
  if (served.pending == Pending::writable)
    engine().transmits().stall(*this);  // whichever comes first
  return served;
}

/// The peer is awaited, or the connection is over.
void RcQueuePair::go_on_unconnected() {
  // guard(meeting): condition => false
  if (meeting_ && closing_.tells_drained(state())) raise(AsyncEventType::sq_drained);
  flush_withheld();
}

void RcQueuePair::resume_held(Time now) {
  // Another queue pair may have taken what was posted.
  if (receives().peek() == nullptr && state() != QpState::closing && !receives().await()) return;
  engine().timers().cancel(receive_wait_);
  const RcEnd result = receive_.resume();
  if (!receive_.delivery().held()) {
    engine().inputs().set_reading(*this, true);
    if (stream_->descriptor() < 0) engine().wake();  // input there is not announced again
  }
  settle(result, now);
}

RcTransmit::Context RcQueuePair::transmit_context() {
  const QpState now = state();
  const bool alone = engine().transmits().is_alone(*this);
  return {
      .sends = sends_,
      .requester = requester_,
      .responder = responder_,
      .stream = *stream_,
      .counters = counters(),
      .protection = protection(),
      .serves_sends = (now == QpState::rts && !closing_.peer_closed()) || now == QpState::closing,
      // guard(rows:burst-shared): alone ? kLoneBurstBytes : kBurstBytes => kLoneBurstBytes
      .burst_bytes = alone ? kLoneBurstBytes : kBurstBytes,
      .zero_copy = stream_.zero_copy()};
}

Served RcQueuePair::send(Time now) {
  if (link_is_full()) return {0, Pending::writable};
  const RcTransmit::Context context = transmit_context();
  const RcTransmit::Result result = transmit_.run(context, now);
  switch (result.fault) {
    case RcTransmit::Fault::none:
      go_on_ending(context);
      break;
    case RcTransmit::Fault::stream_failed:
      lose_connection(end_of_stream(result.error));
      break;
    case RcTransmit::Fault::bad_response:
      end(RcEnd::bad_response);
      break;
    case RcTransmit::Fault::bad_send:
      sends_.complete(result.status);
      end(RcEnd::bad_send);
      break;
  }
  idle_memory_.used(now);
  peer_watch_.sent(now);
  return {result.fpdus, result.pending};
}

// --- States and timers.

void RcQueuePair::on_state(QpState now) {
  if (now == QpState::rts || now == QpState::sqd) {
    closing_.restart_drain();
    engine().transmits().activate(*this);
  }
  if (now != QpState::error && now != QpState::reset) return;
  end_meeting();                                  // guard(meeting)
  const bool ended = static_cast<bool>(stream_);  // else the caller tells the end
  if (stream_) {
    tell_end("the queue pair was moved to another state");
    close_stream(transmit_.at_boundary());
  }
  if (now == QpState::reset)
    receive_.give_back();
  else
    receive_.abandon(WcStatus::wr_flush_error);
  observers_.wake_waiters();
  if (ended) observers_.tell_end({});
}

void RcQueuePair::on_receive_wait(Time now) {
  if (receive_.delivery().held()) return settle(receive_.give_up_waiting(), now);
  if (closing_.peer_closed() && state() != QpState::closing)
    end(RcEnd::lost);  // it takes nothing, either
}

std::error_code RcQueuePair::check_send(const SendWorkRequest& request) const noexcept {
  return rdmap::check_stream_request(request);
}

Address RcQueuePair::local_address() {
  return engine().exclusively([&] { return stream_.local_address(); });
}

QueuePairAttributes RcQueuePair::query() {
  QueuePairAttributes attributes = QueuePair::query();
  engine().exclusively([&] {
    attributes.local_address = stream_.local_address();
    attributes.peer_address = stream_.peer_address();
    attributes.terminate = terminate_;
    attributes.ord = parameters_.ord;
    attributes.ird = parameters_.ird;
    attributes.crc = parameters_.crc;
    attributes.send_markers = parameters_.send_markers;
    attributes.receive_markers = parameters_.receive_markers;
    attributes.mpa_revision = parameters_.revision;
    attributes.keep_alive = peer_watch_.timeouts().keep_alive;
    attributes.user_timeout = peer_watch_.timeouts().user_timeout;
  });
  attributes.stream = options_;
  return attributes;
}

}  // namespace diwarp::rnic
