// SPDX-License-Identifier: Apache-2.0
#include "negotiation.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <utility>

namespace diwarp::rnic {

Negotiation::Negotiation(Control& control, Tcp::socket socket, Duration timeout)
    : control_(control), socket_(std::move(socket)), timeout_(timeout), timer_(control.context()) {}

void Negotiation::begin(Done done) {
  done_ = std::move(done);
  timer_.expires_after(timeout_);
  timer_.async_wait(
      [self = shared_from_this()](const AsioError& error) { self->on_timeout(error); });
  read();
}

void Negotiation::cancel() {
  done_ = {};
  timer_.cancel();
  AsioError ignored;
  socket_.close(ignored);
}

void Negotiation::read() {
  const auto room = std::span(input_).subspan(received_);
  socket_.async_read_some(boost::asio::buffer(room.data(), room.size()),
                          [self = shared_from_this()](const AsioError& error, size_t bytes) {
                            self->on_read(error, bytes);
                          });
}

void Negotiation::on_read(const AsioError& error, size_t bytes) {
  if (!done_) return;
  if (error) return fail(Counter::mpa_bad_requests);
  received_ += bytes;
  const mpa::ParsedStartup parsed =
      mpa::parse_startup(std::span(input_).first(received_), mpa::FrameKind::request);
  if (parsed.status == mpa::StartupStatus::incomplete) return read();
  if (parsed.status != mpa::StartupStatus::ok) return fail(Counter::mpa_bad_requests);
  judge(parsed);
}

void Negotiation::on_timeout(const AsioError& error) {
  if (!error && done_) fail(Counter::mpa_timeouts);
}

void Negotiation::judge(const mpa::ParsedStartup& parsed) {
  std::unique_ptr<llp::TcpStream> stream = adopt_stream(release(socket_));
  if (!stream) return fail(Counter::mpa_bad_requests);
  const mpa::StartupFrame& frame = parsed.frame;
  if (mpa::judge_request(frame, true).fault != mpa::AgreementFault::none) {
    reject_connection(control_, std::move(stream), {});
    return finish();
  }
  const auto rest = std::span(input_).first(received_).subspan(parsed.consumed);
  request_ = IncomingRequest{.stream = std::move(stream),
                             .crc = frame.crc,
                             .private_data = {frame.private_data.begin(), frame.private_data.end()},
                             .leftover = {rest.begin(), rest.end()}};
  finish();
}

void Negotiation::fail(Counter reason) {
  control_.counters().add_shared(reason);
  finish();
}

void Negotiation::finish() {
  const Done done = std::exchange(done_, {});
  cancel();
  done(shared_from_this());
}

bool send_reply(llp::Stream& stream, const mpa::StartupFrame& reply) {
  std::array<std::byte, mpa::kStartupHeaderBytes + mpa::kMaxPrivateData> buffer;
  const ConstBytes frame = std::span(buffer).first(mpa::encode(reply, buffer));
  const llp::IoResult sent = stream.send({&frame, 1});
  return sent.status == llp::IoStatus::ok && sent.bytes == frame.size();
}

void reject_connection(Control& control, std::unique_ptr<llp::TcpStream> stream,
                       std::span<const std::byte> private_data) {
  control.counters().add_shared(Counter::mpa_rejects);
  const mpa::StartupFrame reply{
      .kind = mpa::FrameKind::reply, .reject = true, .private_data = private_data};
  if (!send_reply(*stream, reply)) return;
  stream->shutdown_send();
  control.linger(UniqueFd(stream->release()));
}

}  // namespace diwarp::rnic
