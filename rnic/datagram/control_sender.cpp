// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/control_sender.h"

#include <algorithm>

#include "rnic/datagram/datagram_builder.h"

namespace diwarp::rnic {

bool ControlSender::has_room() {
  if (!ring_) ring_ = try_make_ring<Message>(kPlaces);
  return ring_ && !ring_->full();  // guard(control-ring-full): !ring_->full() => !false
}

bool ControlSender::post_challenge(const llp::Destination& to, const dgram::Challenge& challenge,
                                   size_t limit) {
  // guard(rnic): condition => !has_room()
  if (limit < dgram::kChallengeDatagramBytes || !has_room()) return false;
  Message made{.to = to};
  made.bytes = dgram::encode_challenge(dgram::ControlType::challenge, challenge, made.body);
  return put(made);
}

bool ControlSender::post_error(const llp::Destination& to, const rdmap::ErrorReport& error,
                               size_t limit) {
  constexpr size_t kAround = dgram::Envelope::kOverhead + dgram::kControlHeaderBytes;
  if (limit < kAround || !has_room()) return false;
  Message made{.to = to};
  const size_t header = dgram::encode_control_header(dgram::ControlType::error, made.body);
  const Bytes rest = Bytes(made.body).subspan(header);
  // guard(errors): std::min(limit - kAround, rest.size()) => rest.size()
  const size_t bytes = rdmap::encode_error(error, std::min(limit - kAround, rest.size()), rest);
  if (bytes == 0) return false;
  made.bytes = header + bytes;
  return put(made);
}

bool ControlSender::put(const Message& message) {
  ring_->push_back(message);
  set_idle(false);  // guard(errors)
  waker_.wake();
  return true;
}

void ControlSender::reset() {
  if (ring_) ring_->clear();
}

void ControlSender::fill(DatagramBuilder& builder, Time) {
  const size_t count = ring_ ? ring_->size() : 0;
  set_idle(count == 0);
  for (size_t i = 0; i < count && builder.open(); ++i) {
    const Message& message = (*ring_)[i];
    std::copy_n(message.body.begin(), message.bytes, builder.header().begin());
    builder.add(message.to, {.datagram_class = dgram::DatagramClass::control}, message.bytes, 0,
                {.source = this});
  }
}

void ControlSender::sent(const DatagramTag&) { ring_->pop_front(); }

void ControlSender::refused(const DatagramTag&, int) { ring_->pop_front(); }

}  // namespace diwarp::rnic
