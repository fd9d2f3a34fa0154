// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/timer_queue.h"
#include "rnic/context/meeting.h"
#include "rnic/context/negotiated_connection.h"
#include "rnic/context/taken_number.h"
#include "rnic/queues/queue_pair.h"
#include "rnic/rc/rc_closing.h"
#include "rnic/rc/rc_connections.h"
#include "rnic/rc/rc_idle_memory.h"
#include "rnic/rc/rc_observers.h"
#include "rnic/rc/rc_peer_watch.h"
#include "rnic/rc/rc_receive.h"
#include "rnic/rc/rc_requester.h"
#include "rnic/rc/rc_responder.h"
#include "rnic/rc/rc_stream.h"
#include "rnic/rc/rc_transmit.h"

namespace diwarp::rnic {

/// An RC queue pair: one connection at a time, over a byte stream. A connection that ends takes the
/// queue pair to the error state, from which it can be reset and connected again.
class RcQueuePair final : public QueuePair, public MeetingParty, private RcLossHandler {
 public:
  RcQueuePair(std::shared_ptr<ProtectionDomain> domain, const provider::QueuePairInit& init);
  ~RcQueuePair() override;

  uint32_t number() const override { return number_.get(); }
  Address local_address() override;
  QueuePairAttributes query() override;
  provider::RcOperations* rc() override { return &connections_; }

  /// Takes a connection over: from init to rts, or to rtr. Throws Error(invalid_state), and the
  /// stream is closed, where the state is another.
  void start(NegotiatedConnection connection, QpState to = QpState::rts);

  // --- With the baton.

  /// start() for those that have the baton.
  void take(NegotiatedConnection connection, QpState to = QpState::rts);
  /// From init to rtr, before there is a connection: `meeting`, which begins, brings it.
  void await(std::shared_ptr<PendingMeeting> meeting);
  /// It ends so long from now, if there is one.
  void limit_meeting(Duration timeout) {
    if (meeting_) meeting_->limit(timeout);
  }
  void on_met(NegotiatedConnection connection) override;
  void on_missed(std::error_code status) override;
  /// The first half of an end in order: on_end() follows once everything is out and the peer has
  /// closed its side. A queue pair that waits for its connection is in error at once. Throws
  /// Error(invalid_state) where there never was a connection.
  void begin_disconnect();
  /// Its second half, when the peer has taken too long.
  void give_up_closing();
  /// Ends a connection at once, if there is one.
  void abandon();
  /// Those that are told about connections.
  RcObservers& observers() { return observers_; }

  size_t receive(Time now) override;
  bool set_watched(bool watched) override;
  llp::RoomNotice room_notice() const override;
  Served transmit(Time now) override;

 protected:
  std::error_code check_send(const SendWorkRequest& request) const noexcept override;
  bool may_post_sends(QpState state) const override {
    return state == QpState::rts || state == QpState::sqd;
  }
  void on_state(QpState now) override;

 private:
  void attach(NegotiatedConnection& connection);
  void begin(bool initiator);
  void end_meeting();
  RcTransmit::Context transmit_context();

  void settle(RcEnd result, Time now);
  void resume_held(Time now);
  Served send(Time now);
  void go_on_unconnected();
  void go_on_ending(const RcTransmit::Context& context);
  void lose_connection(RcEnd reason) override;
  void end(RcEnd reason);
  void tell_begin(bool initiator);
  void tell_end(std::string_view reason);
  bool may_begin() const;
  void close_stream(bool in_order, std::vector<std::byte> final_bytes = {});
  void on_receive_wait(Time now);

  const TakenNumber number_;
  const StreamOptions options_;

  RcConnections connections_{*this};

  // Guarded by the baton.
  RcStream stream_;                          // while connected
  std::shared_ptr<PendingMeeting> meeting_;  // while the connection of a named peer is awaited
  std::optional<TerminateInfo> terminate_;   // of the last connection
  mpa::NegotiatedParameters parameters_;     // of the connection
  RcClosing closing_;
  RcObservers observers_;
  RcRequester requester_;
  RcResponder responder_;
  RcTransmit transmit_;
  RcReceive receive_;
  RcPeerWatch peer_watch_;
  RcIdleMemory idle_memory_;
  MemberTimer<RcQueuePair, &RcQueuePair::on_receive_wait> receive_wait_{*this};
};

}  // namespace diwarp::rnic
