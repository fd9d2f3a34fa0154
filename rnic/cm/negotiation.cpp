// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/negotiation.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "rnic/cm/startup_answers.h"
#include "rnic/cm/startup_checks.h"

namespace diwarp::rnic {

Negotiation::Negotiation(Control& control, std::unique_ptr<llp::Stream> stream, Duration timeout)
    : control_(control),
      stream_(std::move(stream)),
      peer_(stream_->peer_address()),
      readiness_(control.context()),
      timeout_(bounded_timeout(timeout)),
      timer_(control.context()) {}

void Negotiation::begin(Done done) {
  done_ = std::move(done);
  readiness_.watch(stream_->descriptor());
  timer_.expires_after(timeout_);  // guard(rows:request-timeout): timeout_ => std::chrono::hours(1)
  timer_.async_wait(
      [self = shared_from_this()](const AsioError& error) { self->on_timeout(error); });
  read();
}

void Negotiation::cancel() {
  done_ = {};
  timer_.cancel();
  readiness_.reset();
  stream_.reset();
}

void Negotiation::read() {
  readiness_.until_readable(
      [self = shared_from_this()](const AsioError& error) { self->on_readable(error); });
}

void Negotiation::on_readable(const AsioError& error) {
  if (!done_) return;
  llp::IoResult came{.status = llp::IoStatus::failed};
  if (!error) came = stream_->receive(std::span(input_).subspan(received_));
  if (came.status == llp::IoStatus::would_block) return read();
  if (came.status != llp::IoStatus::ok)
    return fail(Counter::mpa_bad_requests, Errc::connection_lost,
                "the peer closed the connection before it sent a whole MPA request");
  on_bytes(came.bytes);
}

void Negotiation::on_bytes(size_t bytes) {
  received_ += bytes;
  const mpa::ParsedStartup parsed =
      mpa::parse_startup(std::span(input_).first(received_), mpa::FrameKind::request);
  if (parsed.status == mpa::StartupStatus::incomplete) return read();
  // guard(rows:bad-request-closed): condition => false
  if (parsed.status != mpa::StartupStatus::ok)
    return fail(
        Counter::mpa_bad_requests, Errc::protocol_error,
        "the peer sent bytes that are no MPA request: check that an iWARP program connects here");
  handle_request(parsed);
}

void Negotiation::on_timeout(const AsioError& error) {
  if (!error && done_)  // guard(connect): condition => false
    fail(Counter::mpa_timeouts, Errc::timed_out, "the peer sent no MPA request in time");
}

void Negotiation::handle_request(const mpa::ParsedStartup& parsed) {
  readiness_.reset();
  std::unique_ptr<llp::Stream> stream = unbroken(std::move(stream_));
  if (!stream)
    return fail(Counter::mpa_bad_requests, Errc::connection_lost,
                "the peer broke the connection after its MPA request");
  const ConstBytes data = parsed.frame.private_data;
  const auto rest = std::span(input_).first(received_).subspan(parsed.consumed);
  IncomingRequest request{.stream = std::move(stream),
                          .frame = parsed.frame,
                          .private_data = {data.begin(), data.end()},
                          // guard(rows:start-on-used): without rest.begin(), rest.end()
                          .leftover = {rest.begin(), rest.end()}};
  request.frame.private_data = {};
  // guard(connect): condition => true
  if (mpa::check_request(parsed.frame) == mpa::NegotiationFault::none) {
    outcome_.request = std::move(request);
  } else {
    outcome_.error = make_error_code(Errc::protocol_error);
    outcome_.message =
        "the peer asks for another revision of MPA than 1 and 2: have it ask for one of these";
    reject_connection(control_, std::move(request), {});
  }
  finish();
}

void Negotiation::fail(Counter counter, Errc error, const char* message) {
  control_.counters().add_shared(counter);
  outcome_.error = make_error_code(error);
  outcome_.message = message;
  finish();
}

void Negotiation::finish() {
  if (outcome_.error)
    log::tell(LogLevel::info, {.device = control_.device().name()}, [this] {
      return "On the connection from " + peer_.to_string() + ", " + outcome_.message;
    });
  const Done done = std::exchange(done_, {});
  cancel();
  done(shared_from_this());
}

}  // namespace diwarp::rnic
