// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_closing.h"

namespace diwarp::rnic {

namespace {

/// All that was begun is done: no response is awaited, and no memory is in flight.
bool is_drained(const RcTransmitContext& context, const RcTransmit& transmit) {
  return transmit.drained() && context.requester.idle() && !transmit.zero_copy().in_flight();
}

/// And nothing is to be begun: the send queue is empty, and no response pending.
bool all_sent(const RcTransmitContext& context, const RcTransmit& transmit) {
  return context.sends.pending() == nullptr && context.responder.next() == nullptr &&
         is_drained(context, transmit);
}

}  // namespace

bool RcClosing::outlasts_peer(QpState state, const RcTransmit& transmit,
                              const RcRequester& requester) const {
  const bool still_sending =
      state == QpState::closing && !fin_sent_ && transmit.messages().allowed();
  return (still_sending || transmit.zero_copy().in_flight()) && requester.idle();
}

RcClosing::Step RcClosing::go_on(QpState state, const RcTransmitContext& context,
                                 const RcTransmit& transmit) {
  if (state == QpState::closing) {
    // guard(rows:drain-before-fin): without if (all_sent(context, transmit))
    if (all_sent(context, transmit)) return end_sending(context.stream);
    return Step::none;
  }
  if (peer_closed_ && !transmit.zero_copy().in_flight()) return Step::end_connection;
  if (state != QpState::sqd || drain_told_) return Step::none;
  drain_told_ = transmit.at_boundary() && is_drained(context, transmit);
  return drain_told_ ? Step::tell_drained : Step::none;
}

RcClosing::Step RcClosing::end_sending(llp::Stream& stream) {
  if (!fin_sent_) stream.shutdown_send();
  fin_sent_ = true;
  return peer_closed_ ? Step::end_connection : Step::none;
}

}  // namespace diwarp::rnic
