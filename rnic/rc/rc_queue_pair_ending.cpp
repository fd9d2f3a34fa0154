// SPDX-License-Identifier: Apache-2.0
// How the connections of RcQueuePair end: when, with which final bytes, and which observer is told.
#include <array>
#include <new>
#include <string>
#include <utility>

#include "diwarp/error.h"
#include "rdmap/terminate.h"
#include "rnic/rc/rc_queue_pair.h"

namespace diwarp::rnic {

namespace {

/// Of an end that no Terminate explains.
std::error_code status_of(RcEnd reason) {
  switch (reason) {
    case RcEnd::lost:
      return make_error_code(Errc::connection_lost);
    case RcEnd::timed_out:
      return make_error_code(Errc::timed_out);
    default:
      return {};
  }
}

void count_end(RcEnd reason, Counters& counters) {
  switch (reason) {
    case RcEnd::closed:
      return counters.add(Counter::rc_disconnects);
    case RcEnd::bad_crc:
      return counters.add(Counter::rc_crc_errors);
    // guard(rows:errors-counted): => return;
    case RcEnd::protocol_error:
      return counters.add(Counter::rc_protocol_errors);
    case RcEnd::terminated:
      counters.add(Counter::rc_terminates_received);
      break;
    case RcEnd::timed_out:
      counters.add(Counter::rc_peer_timeouts);
      break;
    default:
      break;
  }
  counters.add(Counter::rc_resets);
}

/// The Terminate that ends the connection, if one does.
std::optional<TerminateInfo> terminate_of(RcEnd reason, const RcTermination& termination) {
  switch (reason) {
    case RcEnd::none:
    case RcEnd::closed:
    case RcEnd::lost:
    case RcEnd::timed_out:
      return std::nullopt;
    // guard(rows:local-error-told): => return std::nullopt;
    case RcEnd::bad_send:
      return TerminateInfo{.code = rdmap::fault::kLocalCatastrophic};
    case RcEnd::bad_response:
      return TerminateInfo{.code = rdmap::fault::kInvalidStag};
    default:
      break;
  }
  TerminateInfo info;
  info.code = termination.code().value_or(rdmap::fault::kLocalCatastrophic);
  info.received = reason == RcEnd::terminated;
  try {
    info.headers.assign(termination.offending().begin(), termination.offending().end());
  } catch (const std::bad_alloc&) {
    info.headers.clear();  // the code is what matters
  }
  return info;
}

/// For an event: one without the headers, where there is no memory for these, is better than none.
std::optional<TerminateInfo> copy_of(const std::optional<TerminateInfo>& terminate) {
  try {
    return terminate;
  } catch (const std::bad_alloc&) {
    return TerminateInfo{.code = terminate->code, .received = terminate->received};
  }
}

/// None, and the stream is reset, where there is no memory for them.
std::vector<std::byte> final_bytes(const RcTransmit& transmit, const RcTransmit::Context& context,
                                   const TerminateInfo& terminate, size_t offending_length) {
  std::array<std::byte, rdmap::kMaxTerminateUlpdu> ulpdu;
  const size_t bytes =
      rdmap::encode_terminate(terminate.code, terminate.headers, ulpdu, offending_length);
  try {
    return transmit.final_bytes(context, ConstBytes(ulpdu).first(bytes));
  } catch (const std::bad_alloc&) {
    context.counters.add(Counter::rc_tx_no_memory);
    return {};
  }
}

}  // namespace

/// The steps that wait for this side's last byte, or for the memory that is in flight.
void RcQueuePair::go_on_ending(const RcTransmit::Context& context) {
  switch (closing_.go_on(state(), context, transmit_)) {
    case RcClosing::Step::none:
      break;
    case RcClosing::Step::tell_drained:
      raise(AsyncEventType::sq_drained);
      break;
    case RcClosing::Step::end_connection:
      // The peer's side ended in order, and nothing was read since: a reset may have come after
      // it, which releases memory as an acknowledgement does.
      // guard(reset-after-end): => end(RcEnd::closed);
      end(stream_->error() == 0 ? RcEnd::closed : RcEnd::lost);
      break;
  }
}

void RcQueuePair::lose_connection(RcEnd reason) {
  stream_->settle();
  RcEnd result = RcEnd::none;
  do {
    if (!receive_.delivery().held())
      result = receive_.read(*stream_, engine().buffers().stream_buffer());
  } while (!receive_.delivery().held() && result == RcEnd::none && receive_.came() != 0);
  const bool says_more = result != RcEnd::none && result != RcEnd::closed && result != RcEnd::lost;
  end(says_more ? result : reason);
}

/// With the code of the Terminate, if one ends the connection.
void RcQueuePair::tell_end(std::string_view reason) {
  log::tell(LogLevel::info, subject(), [&] {
    std::string text = "connection with " + stream_.peer_address().to_string() + " ended: ";
    text.append(reason);
    return terminate_ ? text + " (" + to_string(terminate_->code) + ")" : text;
  });
}

void RcQueuePair::end(RcEnd reason) {
  count_end(reason, counters());
  terminate_ = terminate_of(reason, receive_.termination());  // guard(rows:terminate-told)
  tell_end(describe(reason));
  const bool received = terminate_ && terminate_->received;
  if (received) requester_.refuse(terminate_->code);
  // guard(rows:unfinished-not-delivered): WcStatus::general_error => WcStatus::success
  receive_.abandon(WcStatus::general_error);  // guard(rc)
  const bool in_order = reason == RcEnd::closed && transmit_.at_boundary();
  // guard(rows:terminate-not-answered): without !received &&
  // guard(rows:terminate-sent): without , final_bytes(transmit_, transmit_context(), *terminate_,
  //     receive_.termination().offending_length())
  // guard(rows:responder-silent): without && receive_.heard()
  if (terminate_ && !received && receive_.heard())
    close_stream(false, final_bytes(transmit_, transmit_context(), *terminate_,
                                    receive_.termination().offending_length()));
  else
    close_stream(in_order || received);
  const bool asked_for = state() == QpState::closing && reason == RcEnd::closed;
  enter_error();
  if (reason == RcEnd::closed) {
    if (!asked_for) raise(AsyncEventType::peer_closed);  // guard(rows:close-told)
  } else {
    // guard(rows:fatal-told)
    raise(AsyncEventType::qp_fatal, copy_of(terminate_), status_of(reason));
  }
  const bool silent = reason == RcEnd::timed_out;
  observers_.tell_end(silent ? status_of(reason) : std::error_code());
}

/// A stream with memory in flight is reset, without final bytes: the application may use the memory
/// again when its requests are flushed, and the bytes it writes there must not reach the peer.
void RcQueuePair::close_stream(bool in_order, std::vector<std::byte> final_bytes) {
  if (transmit_.zero_copy().in_flight()) transmit_.zero_copy().complete_released(*stream_, sends_);
  if (transmit_.zero_copy().in_flight()) in_order = false, final_bytes.clear();
  engine().timers().cancel(receive_wait_);
  peer_watch_.stop();
  transmit_.forget();
  stream_.close(in_order, std::move(final_bytes));
}

}  // namespace diwarp::rnic
