// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/group_input.h"

#include "rnic/engine/engine.h"

namespace diwarp::rnic {

void GroupInput::attach() {
  link_->on_degradation([this](const llp::Degradation& what) {
    if (!what.sending) receiver_.count_degradation(what);  // a group's link sends nothing
  });
  engine_.inputs().attach(*this, nullptr, link_->descriptor(), link_->input_queue());
  link_->set_key(static_cast<InputSource*>(this));
  if (link_->descriptor() < 0) link_->on_ready([engine = &engine_] { engine->wake(); });
}

void GroupInput::detach() {
  link_->set_key(nullptr);
  engine_.inputs().detach(*this);
}

size_t GroupInput::receive(Time now) {
  llp::ReceiveBatch& batch = engine_.buffers().receive_batch();
  const size_t count = link_->receive(batch);
  if (count == 0) return 0;
  for (llp::IncomingDatagram datagram : batch.datagrams()) {
    datagram.via = number_;
    receiver_.handle(datagram, now);
  }
  const uint64_t overflowed = link_->overflowed();
  if (overflowed != overflowed_) {  // guard(overflow): condition => false
    engine_.counters().add(Counter::rx_overflow, overflowed - overflowed_);
    overflowed_ = overflowed;
  }
  receiver_.after_receive(now);
  return count;
}

}  // namespace diwarp::rnic
