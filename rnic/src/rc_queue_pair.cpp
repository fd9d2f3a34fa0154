// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc_queue_pair.h"

#include <algorithm>
#include <string>
#include <utility>

#include "diwarp/error.h"
#include "rnic/connector.h"
#include "rnic/waiting.h"

namespace diwarp::rnic {

RcQueuePair::RcQueuePair(std::shared_ptr<ProtectionDomain> domain, const QueuePairInit& init)
    : QueuePair(std::move(domain), init),
      number_(device()->take_number()),
      receive_(*this, receives_, device()->engine().counters()) {
  engine().exclusively([this] {
    local_ = device()->address();
    park();
    set_state(QpState::init);
  });
}

RcQueuePair::~RcQueuePair() {
  engine().exclusively([this] {
    if (stream_) close_stream(transmit_.at_boundary());
    engine().timers().cancel(trim_);
    engine().detach(*this);
  });
  device()->return_number(number_);
}

// --- Connecting.

void RcQueuePair::require_init() const {
  if (state() == QpState::init) return;
  throw Error(make_error_code(Errc::invalid_state),
              "Only a queue pair in init can be connected, and this one is in " +
                  std::string(to_string(state())) +
                  "; after a connection has ended, modify() it to reset and then to init");
}

std::vector<std::byte> RcQueuePair::connect(const Address& peer, const ConnectOptions& options) {
  require_init();
  Established connection = open_connection(*device(), peer, options);
  std::vector<std::byte> private_data = std::move(connection.private_data);
  start(std::move(connection));
  return private_data;
}

void RcQueuePair::start(Established connection) {
  engine().exclusively([&] {
    require_init();
    attach_stream(std::move(connection.stream));
    local_ = stream_->local_address();
    peer_ = stream_->peer_address();
    peer_closed_ = fin_sent_ = false;
    transmit_.start(connection.agreement, connection.initiator);
    receive_.start(connection.agreement.crc, connection.leftover);
    set_state(QpState::rts);
    counters().add(Counter::rc_connections);
    settle(receive_.resume(), engine().clock().now());
  });
}

/// The stream's descriptor is watched instead of nothing.
void RcQueuePair::attach_stream(std::unique_ptr<llp::Stream> stream) {
  engine().detach(*this);
  try {
    engine().attach(*this, stream->descriptor());
  } catch (...) {
    park();
    throw;
  }
  stream_ = std::move(stream);
  if (stream_->descriptor() < 0) stream_->on_ready([engine = &engine()] { engine->wake(); });
}

/// In service without a stream: there may be completions to report.
void RcQueuePair::park() {
  engine().detach(*this);
  engine().attach(*this, -1);
  engine().set_reading(*this, false);
}

// --- Disconnecting.

bool RcQueuePair::connected() const {
  const QpState now = state();
  return now == QpState::rts || now == QpState::closing;
}

void RcQueuePair::disconnect(const DisconnectOptions& options) {
  const Time deadline = deadline_after(engine().clock().now(), options.timeout);
  engine().exclusively([this] { begin_disconnect(); });
  if (wait_ended(deadline)) return;
  engine().exclusively([this] {
    if (state() == QpState::closing) end(RcEnd::lost);
  });
}

void RcQueuePair::begin_disconnect() {
  if (state() == QpState::error || state() == QpState::closing) return;
  if (state() != QpState::rts)
    throw Error(
        make_error_code(Errc::invalid_state),
        "This queue pair has no connection to end: it is in " + std::string(to_string(state())));
  set_state(QpState::closing);
  receive_.discard_unwanted();
  engine().activate(*this);
}

bool RcQueuePair::wait_disconnected(Duration timeout) {
  return wait_ended(deadline_after(engine().clock().now(), timeout));
}

bool RcQueuePair::wait_ended(Time deadline) {
  if (!connected()) return true;
  Waiter waiter;
  engine().exclusively([&] { waiters_.push_back(waiter); });
  for (Time now = engine().clock().now(); connected() && now < deadline;
       now = engine().clock().now())
    rest(engine(), waiter.sleeper, deadline - now);
  engine().exclusively([&] { waiter.unlink(); });
  return !connected();
}

// --- In the engine.

size_t RcQueuePair::receive(Time now) {
  if (!stream_) return 0;
  if (receive_.held() || peer_closed_) {
    end(RcEnd::lost);  // nothing is read, so it is a broken stream that asks
    return 1;
  }
  const RcEnd result = receive_.read(*stream_, engine().stream_buffer());
  if (result == RcEnd::none && receive_.came() == 0) return 0;
  settle(result, now);
  return 1;
}

/// After the receiving half took bytes, or none.
void RcQueuePair::settle(RcEnd result, Time now) {
  const bool still_sending = state() == QpState::closing && !fin_sent_ && transmit_.allowed();
  if (result == RcEnd::closed && still_sending) {
    peer_closed_ = true;
    engine().set_reading(*this, false);
  } else if (result != RcEnd::none) {
    return end(result);
  }
  if (receive_.held()) {
    engine().set_reading(*this, false);
    engine().timers().arm(receive_wait_, now + kReceiveWait);
  }
  if (receive_.heard() && !transmit_.allowed()) {
    transmit_.allow();
    engine().activate(*this);
  }
  if (receive_.keeps_memory() && !trim_.armed()) engine().timers().arm(trim_, now + kTrimAfter);
  if (!report()) engine().stall(*this);
}

Served RcQueuePair::transmit(Time now) {
  if (stream_ && receive_.held()) resume_held(now);
  Served served;
  if (stream_) served = send(now);
  if (report()) return served;
  if (served.pending == Pending::nothing) served.pending = Pending::stalled;
  if (served.pending == Pending::writable) engine().stall(*this);  // whichever comes first
  return served;
}

void RcQueuePair::resume_held(Time now) {
  if (receives_.peek() == nullptr && state() != QpState::closing) return;
  engine().timers().cancel(receive_wait_);
  const RcEnd result = receive_.resume();
  if (!receive_.held()) {
    engine().set_reading(*this, true);
    if (stream_->descriptor() < 0) engine().wake();  // what waits there tells nobody again
  }
  settle(result, now);
}

Served RcQueuePair::send(Time now) {
  if (link_is_full()) return {0, Pending::writable};
  const RcTransmit::Result result = transmit_.run({sends_, *stream_, counters(), *this}, now);
  if (result.fault == RcTransmit::Fault::stream_failed) {
    lose();
  } else if (result.fault == RcTransmit::Fault::bad_memory) {
    sends_.complete(WcStatus::local_protection_error);
    end(RcEnd::bad_send);
  } else if (state() == QpState::closing && sends_.pending() == nullptr) {
    finish_closing();
  }
  return {result.fpdus, result.pending};
}

/// Closing, and everything is out.
void RcQueuePair::finish_closing() {
  if (!fin_sent_) stream_->shutdown_send();
  fin_sent_ = true;
  if (peer_closed_) end(RcEnd::closed);
}

/// The stream takes nothing any more. What it brought before is still delivered.
void RcQueuePair::lose() {
  RcEnd result = RcEnd::none;
  do {
    if (!receive_.held()) result = receive_.read(*stream_, engine().stream_buffer());
  } while (!receive_.held() && result == RcEnd::none && receive_.came() != 0);
  end(result == RcEnd::none || result == RcEnd::closed ? RcEnd::lost : result);
}

// --- The end of a connection.

void RcQueuePair::end(RcEnd reason) {
  count_end(reason);
  const bool in_order = reason == RcEnd::closed || reason == RcEnd::bad_send;
  receive_.finish(WcStatus::general_error);
  close_stream(in_order && transmit_.at_boundary());
  enter_error();
}

void RcQueuePair::count_end(RcEnd reason) {
  switch (reason) {
    case RcEnd::none:
      break;
    case RcEnd::closed:
      return counters().add(Counter::rc_disconnects);
    case RcEnd::bad_crc:
      return counters().add(Counter::rc_crc_errors);
    case RcEnd::protocol_error:
      return counters().add(Counter::rc_protocol_errors);
    case RcEnd::lost:
    case RcEnd::bad_receive:
    case RcEnd::bad_send:
      break;
  }
  counters().add(Counter::rc_resets);
}

void RcQueuePair::close_stream(bool in_order) {
  engine().timers().cancel(receive_wait_);
  if (stream_->descriptor() < 0) stream_->on_ready({});
  park();  // the poller has to forget the descriptor before it is closed
  if (!in_order) stream_->abort();
  stream_.reset();
}

void RcQueuePair::on_state(QpState now) {
  if (now != QpState::error && now != QpState::reset) return;
  if (stream_) close_stream(transmit_.at_boundary());
  if (now == QpState::reset)
    receive_.give_back();
  else
    receive_.finish(WcStatus::wr_flush_error);
  for (Waiter* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter))
    waiter->sleeper.wake();
}

void RcQueuePair::on_receive_wait(Time) {
  if (receive_.held()) end(RcEnd::bad_receive);
}

void RcQueuePair::on_trim(Time now) {
  if (receive_.trim()) engine().timers().arm(trim_, now + kTrimAfter);
}

QueuePairAttributes RcQueuePair::query() {
  QueuePairAttributes attributes = QueuePair::query();
  engine().exclusively([&] {
    attributes.local_address = local_;
    attributes.peer_address = peer_;
  });
  return attributes;
}

}  // namespace diwarp::rnic
