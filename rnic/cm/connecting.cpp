// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/connecting.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "diwarp/error.h"
#include "rdmap/terminate.h"
#include "rnic/cm/startup_answers.h"
#include "rnic/context/loopback_reach.h"

namespace diwarp::rnic {

namespace {

/// Between attempts to connect to a peer that refuses: at first, and once it has doubled.
constexpr Duration kFirstRefusedPause = std::chrono::milliseconds(10);
constexpr Duration kLongestRefusedPause = std::chrono::milliseconds(160);

mpa::MpaProposal proposal_of(const ConnectOptions& options) {
  // guard(connect): condition => false
  if (options.revision < 1 || options.revision > mpa::kHighestRevision)
    throw Error(make_error_code(Errc::invalid_argument),
                "MPA has the revisions 1 and 2, not " + std::to_string(options.revision));
  check_private_data(options.private_data, options.revision == 2);  // guard(connect)
  check_depths(options.ord, options.ird);                           // guard(connect)
  check_timeouts({options.keep_alive, options.user_timeout});
  return {.crc = options.crc,
          .markers = options.markers,
          .ord = options.ord,
          .ird = options.ird,
          .revision = options.revision,
          .peer_to_peer = options.peer_to_peer};
}

/// What is wrong with a reply in revision `theirs` to a request in `own`.
std::string wrong_revision(uint8_t theirs, uint8_t own) {
  const std::string told = "answered in revision " + std::to_string(theirs) +
                           " of MPA to a request in revision " + std::to_string(own);
  if (theirs < 1 || theirs > mpa::kHighestRevision)
    return told + ": check the port, and what serves it";
  return told + ": set ConnectOptions::revision to " + std::to_string(theirs);
}

}  // namespace

Connecting::Connecting(Control& control, const Address& local, const Address& peer,
                       const ConnectOptions& options)
    : control_(control),
      local_(local),
      peer_(peer),
      timeout_(bounded_timeout(options.timeout)),
      retry_refused_(std::clamp(options.retry_refused, Duration::zero(), timeout_)),
      timeouts_{options.keep_alive, options.user_timeout},
      proposal_(proposal_of(options)),
      // guard(connect): without options.fallback &&
      falls_back_(options.fallback && options.revision == 2),
      may_fall_back_(falls_back_),
      private_data_(options.private_data.begin(), options.private_data.end()),
      readiness_(control.context()),
      timer_(control.context()),
      refused_timer_(control.context()),
      refused_pause_(kFirstRefusedPause) {}

void Connecting::begin(Done done) {
  arm(std::move(done));
  open();
}

void Connecting::begin_on(std::unique_ptr<llp::Stream> stream, Done done) {
  arm(std::move(done));
  refused_until_ = {};
  may_fall_back_ = false;  // guard(connect)
  use(std::move(stream));
  request();
}

void Connecting::cancel() {
  done_ = {};
  timer_.cancel();
  refused_timer_.cancel();
  hang_up();
}

void Connecting::hang_up() {
  readiness_.reset();
  pending_.reset();
  stream_.reset();
}

void Connecting::use(std::unique_ptr<llp::Stream> stream) {
  hang_up();
  stream_ = std::move(stream);
  readiness_.watch(stream_->descriptor());
}

void Connecting::arm(Done done) {
  done_ = std::move(done);
  refused_until_ = std::chrono::steady_clock::now() + retry_refused_;
  timer_.expires_after(timeout_);  // guard(rows:reply-timeout): timeout_ => std::chrono::hours(1)
  timer_.async_wait(
      [self = shared_from_this()](const AsioError& error) { self->on_timeout(error); });
}

/// From the device's address.
void Connecting::open() {
  if (LoopbackReach(local_, control_.counters()).refuses(peer_))
    return fail(make_error_code(Errc::loopback_device),
                "No way leads from " + local_.host() + " to " + peer_.to_string());
  std::error_code error;
  pending_ = control_.connector().connect(local_, peer_, error);
  if (!pending_)
    return fail(error, "No socket could be bound to " + local_.host() +
                           ": is it still an address of this host, and are there descriptors left "
                           "(ulimit -n)?");
  readiness_.watch(pending_->descriptor());
  wait_until_connected();
}

void Connecting::wait_until_connected() {
  readiness_.until_writable(
      [self = shared_from_this(), attempt = attempt_](const AsioError& error) {
        if (attempt == self->attempt_) self->on_progress(error);
      });
}

void Connecting::on_timeout(const AsioError& error) {
  if (error || !done_) return;
  if (refused_) return finish(std::move(*refused_));
  if (exchange_.requested())
    control_.counters().add_shared(Counter::mpa_timeouts);  // guard(connect)
  fail(make_error_code(Errc::timed_out),
       peer_.to_string() + (exchange_.requested()
                                ? " took the connection but sent no MPA reply in time: does "
                                  "an iWARP listener serve that port, and does it answer?"
                                : " did not answer in time: check the address, and that no "
                                  "firewall swallows the packets"));
}

void Connecting::on_progress(const AsioError& error) {
  if (!done_) return;
  if (error) return on_connected({.error = to_std(error)});
  llp::ConnectResult result = pending_->finish();
  if (!result.stream && !result.error) return wait_until_connected();
  on_connected(std::move(result));
}

void Connecting::on_connected(llp::ConnectResult result) {
  if (result.error == std::errc::connection_reset) return lose();
  if (result.error) {
    const bool refused = result.error == std::errc::connection_refused;
    ConnectOutcome outcome{
        .error = result.error,
        .message = "No connection to " + peer_.to_string() +
                   ": check the address and the port, and that a listener is running there"};
    return refused ? fail_or_retry(std::move(outcome)) : finish(std::move(outcome));
  }
  refused_.reset();
  use(std::move(result.stream));
  request();
}

void Connecting::request() {
  exchange_.begin(mpa::make_request(proposal_, private_data_));
  write();
}

void Connecting::write() {
  const ConstBytes left = exchange_.unsent();
  const llp::IoResult result = stream_->send({&left, 1});
  if (result.status == llp::IoStatus::failed) return lose();
  exchange_.count_sent(result.bytes);
  if (exchange_.unsent().empty()) return read();
  readiness_.until_writable(
      [self = shared_from_this(), attempt = attempt_](const AsioError& error) {
        if (attempt == self->attempt_) self->on_writable(error);
      });
}

void Connecting::on_writable(const AsioError& error) {
  if (!done_) return;
  error ? lose() : write();
}

void Connecting::read() {
  readiness_.until_readable(
      [self = shared_from_this(), attempt = attempt_](const AsioError& error) {
        if (attempt == self->attempt_) self->on_readable(error);
      });
}

void Connecting::on_readable(const AsioError& error) {
  if (!done_) return;
  if (error) return lose();
  const llp::IoResult came = stream_->receive(exchange_.room());
  if (came.status == llp::IoStatus::would_block) return read();
  if (came.status != llp::IoStatus::ok) return lose();
  on_bytes(came.bytes);
}

void Connecting::on_bytes(size_t bytes) {
  exchange_.count_received(bytes);
  const mpa::ParsedStartup reply = mpa::parse_startup(exchange_.received(), mpa::FrameKind::reply);
  switch (reply.status) {
    case mpa::StartupStatus::incomplete:
      return read();
    // guard(rows:bad-reply-refused): => return read();
    case mpa::StartupStatus::bad_key:
      return refuse("does not speak MPA: check the port");
    case mpa::StartupStatus::bad_length:
      return refuse(
          "announces more than 512 bytes of private data, which MPA does not allow: check the "
          "port, and what serves it");
    case mpa::StartupStatus::bad_enhanced:
      return refuse(
          "announces MPA's enhanced data and does not send it: set ConnectOptions::revision to 1, "
          "which has none");
    case mpa::StartupStatus::ok:
      return handle_reply(reply);
  }
}

void Connecting::handle_reply(const mpa::ParsedStartup& reply) {
  const mpa::NegotiationResult result = mpa::check_reply(reply.frame, proposal_);
  const bool older = reply.frame.revision < proposal_.revision;
  if (older && fall_back()) return;  // guard(connect): => static_cast<void>(older);
  switch (result.fault) {
    case mpa::NegotiationFault::none:
      return accept(reply, result.parameters);
    case mpa::NegotiationFault::revision:
      return refuse(wrong_revision(reply.frame.revision, proposal_.revision));
    case mpa::NegotiationFault::not_enhanced:
      return refuse(
          "left the enhanced data out of its MPA reply: set ConnectOptions::revision to 1, which "
          "has none");
    case mpa::NegotiationFault::insufficient_ird:
    case mpa::NegotiationFault::no_matching_ready:
      return end_with_terminate(result.fault, result.parameters);
    case mpa::NegotiationFault::rejected:
      break;
  }
  control_.counters().add_shared(Counter::mpa_rejects);
  const ConstBytes data = reply.frame.private_data;
  finish({.error = make_error_code(Errc::rejected),
          .message = peer_.to_string() + " rejected the connection; its private data may say why",
          .private_data = {data.begin(), data.end()}});
}

void Connecting::accept(const mpa::ParsedStartup& reply,
                        const mpa::NegotiatedParameters& parameters) {
  const ConstBytes data = reply.frame.private_data;
  const auto rest = exchange_.received().subspan(reply.consumed);
  readiness_.reset();
  // guard(rows:private-data): without data.begin(), data.end()
  finish({.stream = std::move(stream_),
          .parameters = parameters,
          .private_data = {data.begin(), data.end()},
          // guard(rows:reply-leftover): without rest.begin(), rest.end()
          .leftover = {rest.begin(), rest.end()},
          .timeouts = timeouts_});
}

/// RFC 6581 section 8: the peer is told why nothing comes of it.
void Connecting::end_with_terminate(mpa::NegotiationFault fault,
                                    const mpa::NegotiatedParameters& parameters) {
  const bool depth = fault == mpa::NegotiationFault::insufficient_ird;
  // guard(rows:startup-codes): => const TerminateCode code = depth ? rdmap::fault::kNoMatchingReady
  //     : rdmap::fault::kInsufficientIrd;
  const TerminateCode code =
      depth ? rdmap::fault::kInsufficientIrd : rdmap::fault::kNoMatchingReady;
  control_.counters().add_shared(Counter::rc_terminates_sent);
  readiness_.reset();
  // guard(connect): => static_cast<void>(terminate_fpdu(code, parameters));
  control_.start_lingering_close(std::move(stream_), terminate_fpdu(code, parameters));
  refuse(depth
             ? "wants more outstanding Reads than were offered: raise ird here, or lower ord there"
             : "takes none of the messages that were offered to make it ready: switch "
               "peer_to_peer off");
}

/// Ends this attempt; there will be another one.
void Connecting::give_attempt_up() {
  ++attempt_;
  exchange_.reset();
  // A port that was named is free for the next attempt only if this one leaves no trace of it.
  if (local_.port() != 0 && stream_) stream_->abort();  // guard(connect)
  hang_up();
}

/// Asks once more, as peers that know revision 1 alone need it. False if that was done already, or
/// may not be.
bool Connecting::fall_back() {
  if (!std::exchange(may_fall_back_, false)) return false;
  if (!std::exchange(told_fallback_, true))
    log::tell(LogLevel::info, {.device = control_.device().name()}, [this] {
      return peer_.to_string() + " may know MPA revision 1 alone, and is asked again in that";
    });
  proposal_.revision = 1;
  give_attempt_up();
  open();
  return true;
}

/// Nobody listens there yet: waits for the next attempt, unless that has lasted too long.
void Connecting::fail_or_retry(ConnectOutcome outcome) {
  const Duration left = refused_until_ - std::chrono::steady_clock::now();
  if (left <= Duration::zero()) return finish(std::move(outcome));
  give_attempt_up();
  refused_ = std::move(outcome);
  may_fall_back_ = falls_back_;
  if (falls_back_) proposal_.revision = 2;
  refused_timer_.expires_after(std::min(refused_pause_, left));
  refused_pause_ = std::min(2 * refused_pause_, kLongestRefusedPause);
  refused_timer_.async_wait(
      [self = shared_from_this(), attempt = attempt_](const AsioError& error) {
        if (!error && self->done_ && attempt == self->attempt_) self->open();
      });
}

/// Before a byte came, the peer may be one for another revision, or a port that is forwarded to one
/// where nobody listens yet.
void Connecting::lose() {
  const bool asked = exchange_.requested();
  const bool answered = asked && !exchange_.received().empty();
  if (asked && !answered && fall_back()) return;  // guard(connect)
  ConnectOutcome outcome{.error = make_error_code(Errc::connection_lost),
                         .message = peer_.to_string() +
                                    " closed the connection before it sent an MPA reply: does an "
                                    "iWARP listener serve that port, and is it still running?"};
  answered ? finish(std::move(outcome)) : fail_or_retry(std::move(outcome));
}

/// The peer is not what this side can talk to.
void Connecting::refuse(const std::string& reason) {
  control_.counters().add_shared(Counter::mpa_bad_requests);
  fail(make_error_code(Errc::protocol_error), peer_.to_string() + " " + reason);
}

void Connecting::fail(std::error_code error, const std::string& message) {
  finish({.error = error, .message = message});
}

void Connecting::finish(ConnectOutcome outcome) {
  if (outcome.error)
    log::write(LogLevel::info, {.device = control_.device().name()}, outcome.message);
  const Done done = std::exchange(done_, {});
  cancel();
  done(std::move(outcome));
}

}  // namespace diwarp::rnic
