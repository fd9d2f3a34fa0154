// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/startup_answers.h"

#include <array>
#include <utility>

#include "base/log.h"
#include "diwarp/error.h"
#include "mpa/fpdu.h"
#include "rdmap/terminate.h"
#include "rnic/cm/control.h"
#include "rnic/cm/startup_checks.h"

namespace diwarp::rnic {

namespace {

/// Sends a reply on a connection that little was sent on before, so that the socket takes it at
/// once. False if the connection is gone.
bool send_reply(llp::Stream& stream, const mpa::StartupFrame& reply) {
  std::array<std::byte, mpa::kMaxStartupBytes> buffer;
  const ConstBytes frame = std::span(buffer).first(mpa::encode(reply, buffer));
  const llp::IoResult sent = stream.send({&frame, 1});
  return sent.status == llp::IoStatus::ok && sent.bytes == frame.size();
}

}  // namespace

mpa::MpaProposal proposal_of(const AcceptOptions& options) {
  return {.crc = options.crc, .markers = options.markers, .ord = options.ord, .ird = options.ird};
}

void check_options(const AcceptOptions& options, const mpa::StartupFrame& request) {
  // guard(connect): => static_cast<void>(request);
  check_private_data(options.private_data, request.enhanced.has_value());
  check_depths(options.ord, options.ird);  // guard(connect)
  check_timeouts({options.keep_alive, options.user_timeout});
}

NegotiatedConnection accept_connection(IncomingRequest request, const AcceptOptions& options) {
  mpa::Answer answer = mpa::answer_request(request.frame, proposal_of(options));
  answer.reply.private_data = options.private_data;
  if (!send_reply(*request.stream, answer.reply))
    throw Error(make_error_code(Errc::connection_lost),
                request.stream->peer_address().to_string() +
                    " gave up before it was accepted: accept sooner, or raise "
                    "ConnectOptions::timeout there");
  NegotiatedConnection connection;
  connection.stream = std::move(request.stream);
  connection.initiator = false;
  connection.parameters = answer.parameters;
  connection.leftover = std::move(request.leftover);
  connection.private_data = std::move(request.private_data);
  connection.timeouts = {options.keep_alive, options.user_timeout};
  return connection;
}

void reject_connection(Control& control, IncomingRequest request,
                       std::span<const std::byte> private_data) {
  control.counters().add_shared(Counter::mpa_rejects);
  log::tell(LogLevel::info, {.device = control.device().name()}, [&] {
    return "the connection request of " + request.stream->peer_address().to_string() +
           " is rejected";
  });
  if (!send_reply(*request.stream, mpa::make_reject(request.frame, private_data))) return;
  if (request.stream->leave_engine()) control.start_lingering_close(std::move(request.stream), {});
}

std::vector<std::byte> terminate_fpdu(const TerminateCode& code,
                                      const mpa::NegotiatedParameters& parameters) {
  std::array<std::byte, rdmap::kMaxTerminateUlpdu> buffer;
  const ConstBytes ulpdu = std::span(buffer).first(rdmap::encode_terminate(code, {}, buffer));
  std::vector<std::byte> fpdu(mpa::marked_fpdu_bytes(ulpdu.size()));
  // Without markers: as in the middle of a marked stream, between two of them.
  const uint64_t position = parameters.send_markers ? 0 : mpa::kMarkerBytes;
  fpdu.resize(mpa::encode_marked_fpdu({&ulpdu, 1}, position, parameters.crc, fpdu));
  return fpdu;
}

}  // namespace diwarp::rnic
