// SPDX-License-Identifier: Apache-2.0
#include "fuzz/verbs_states.h"

#include <utility>

#include "fuzz/verbs_calls.h"
#include "support/software.h"

namespace diwarp::fuzz {
namespace {

rnic::RcQueuePair& rc_of(VerbsQp& which) { return test::software(*which.qp); }

}  // namespace

void VerbsStates::change_state(VerbsQp& which) {
  const unsigned how = run_.in.below(10);
  switch (how) {
    case 7:
      return void(accepted([&] {
        test::software(run_.hosts.devices[which.domain->device]).engine().exclusively([&] {
          if (which.type == QpType::rc) rc_of(which).begin_disconnect();
        });
      }));
    case 8:
      if (which.type == QpType::rc)
        test::software(run_.hosts.devices[which.domain->device]).engine().exclusively([&] {
          rc_of(which).give_up_closing();
        });
      return;
    case 0:
    case 9:
      return reset(which);
    default:
      accepted([&] { which.qp->modify(static_cast<QpState>(how)); });
  }
  if (how == static_cast<unsigned>(QpState::error)) check_flushed(which);
}

/// Completed requests were reported before, so that all open ones are dropped. Where it cannot be
/// polled some of it may still lie in a completion queue: the queue pair stays as it is.
void VerbsStates::reset(VerbsQp& which) {
  run_.hosts.settle();
  completions_.poll_all();
  if (!run_.slots.has_cq(which.send_cq) || !run_.slots.has_cq(which.recv_cq)) return;
  if (!accepted([&] { which.qp->modify(QpState::reset); })) return;
  for (const uint64_t number : {which.ledgers, which.ledgers + 1}) {
    run_.posted.ledgers[number]->open.dropped();
    run_.posted.ledgers[number]->sinks.clear();
  }
  accepted([&] { which.qp->modify(QpState::init); });
  if (which.type != QpType::rc) accepted([&] { which.qp->modify(QpState::rts); });
}

void VerbsStates::check_flushed(const VerbsQp& which) {
  run_.hosts.settle();
  completions_.poll_all();
  if (which.qp->state() != QpState::error) return;
  if (run_.slots.has_cq(which.send_cq))
    run_.posted.ledgers[which.ledgers]->open.check_all_completed();
  if (run_.slots.has_cq(which.recv_cq))
    run_.posted.ledgers[which.ledgers + 1]->open.check_all_completed();
}

void VerbsStates::join(VerbsQp& a, VerbsQp& b) {
  if (a.type != QpType::rc || b.type != QpType::rc) return;
  if (a.qp->state() != QpState::init || b.qp->state() != QpState::init) return;
  const unsigned how = run_.in.u8();
  const auto negotiated = [&](bool initiator) {
    rnic::NegotiatedConnection side;
    side.initiator = initiator;
    side.parameters.crc = (how & 1U) == 0;
    side.parameters.send_markers = (how & (initiator ? 2U : 4U)) != 0;
    side.parameters.receive_markers = (how & (initiator ? 4U : 2U)) != 0;
    side.parameters.ready = static_cast<ReadyToReceive>(how >> 3U & 3U);
    side.parameters.ord = side.parameters.ird = static_cast<uint16_t>(1 + (how >> 5U & 1U));
    return side;
  };
  auto [first, second] =
      llp::memory_stream_pair((how & 64U) != 0 ? 2048 : 65536, (how & 128U) != 0 ? 256 : 1460);
  rnic::NegotiatedConnection of_a = negotiated(true), of_b = negotiated(false);
  of_a.stream = std::move(first);
  of_b.stream = std::move(second);
  a.peer = b.serial;
  b.peer = a.serial;
  rc_of(a).start(std::move(of_a));
  rc_of(b).start(std::move(of_b));
}

void VerbsStates::query(VerbsQp& which) {
  const QueuePairAttributes attributes = which.qp->query();
  require(attributes.posted_sends <= 4 && (which.srq || attributes.posted_receives <= 4),
          "a queue says that it holds more than it can");
  if (which.type == QpType::rc) return;
  accepted([&] { which.qp->poll_error(); });
  accepted([&] { which.qp->open_records(); });
  accepted([&] { which.qp->peers(); });
  const unsigned how = run_.in.u8();
  if ((how & 3U) == 0) accepted([&] { which.qp->set_max_rate((how >> 2U) * 10000U); });
  if ((how & 3U) == 1) accepted([&] { which.qp->join(Address::parse("239.1.1.1"), ""); });
  if ((how & 3U) == 2) accepted([&] { which.qp->leave(Address::parse("239.1.1.1"), ""); });
}

}  // namespace diwarp::fuzz
