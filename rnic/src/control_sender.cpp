// SPDX-License-Identifier: Apache-2.0
#include "rnic/control_sender.h"

#include <algorithm>

#include "rnic/datagram_burst.h"

namespace diwarp::rnic {

bool ControlSender::post(const Address& to, const rdmap::ControlMessage& message, size_t limit) {
  if (!ring_) ring_ = try_make_ring<Message>(kPlaces);
  if (!ring_ || ring_->full()) return false;
  Message made;
  made.to = to;
  const size_t prefix = rdmap::encode_prefix(rdmap::DatagramClass::control, 0, incarnation_,
                                             made.contents);
  const size_t most = std::min(limit, made.contents.size() + rdmap::kDatagramCrcBytes);
  const size_t bytes = rdmap::encode_control(message, most, Bytes(made.contents).subspan(prefix));
  if (bytes == 0) return false;
  made.bytes = prefix + bytes;
  ring_->push_back(made);
  wake_();
  return true;
}

void ControlSender::reset() {
  if (ring_) ring_->clear();
}

void ControlSender::fill(DatagramRoom& room, Time) {
  const size_t count = ring_ ? ring_->size() : 0;
  for (size_t i = 0; i < count && room.open(); ++i) {
    const Message& message = (*ring_)[i];
    std::copy_n(message.contents.begin(), message.bytes, room.header().begin());
    room.add(message.to, message.bytes, 0, {.origin = this});
  }
}

void ControlSender::sent(const DatagramMark&) { ring_->pop_front(); }

void ControlSender::refused(const DatagramMark&, int) { ring_->pop_front(); }

}  // namespace diwarp::rnic
