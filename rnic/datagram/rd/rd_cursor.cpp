// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_cursor.h"

#include "ddp/segmentation.h"
#include "rnic/datagram/rd/rd_requests.h"

namespace diwarp::rnic {

using dgram::MessageKind;

std::optional<RdPart> RdCursor::next(const SendQueue& sends, size_t segment,
                                     size_t response) const {
  if (closing_) return RdPart{.tag = {.message = *closing_}, .skip = true};
  const bool waits = entry_ != nullptr && is_read(*entry_) && requests_ >= dgram::kMaxReadRequests;
  const bool has_entry = entry_ != nullptr && !waits;
  if (inbound_ != nullptr && (inbound_next_ || !has_entry)) return next_response(response);
  if (!has_entry) return std::nullopt;
  return next_of_entry(sends, segment);
}

RdPart RdCursor::next_response(size_t response) const {
  const ddp::Segment segment =
      ddp::next_segment(inbound_->request.length, inbound_offset_, response);
  return {.tag = {.message = {MessageKind::read_response, inbound_->request.sink_stag},
                  .object = inbound_->index,
                  .offset = inbound_offset_,
                  .length = inbound_->failed ? 0 : segment.length,
                  .failure = inbound_->failed}};
}

/// A Read is cut into requests as a message is into segments.
RdPart RdCursor::next_of_entry(const SendQueue& sends, size_t segment) const {
  const bool asks = is_read(*entry_);
  const size_t most = asks ? rdmap::kMaxReadRequest : segment;
  const ddp::Segment next = ddp::next_segment(entry_->length, offset_, most);
  return {.tag = {.message = asks ? request_of(*entry_, offset_) : message_of(*entry_),
                  .object = sends.place_of(*entry_),
                  .offset = static_cast<uint32_t>(offset_),
                  .length = next.length}};
}

void RdCursor::advance(const RdPart& part) {
  if (part.skip) return closing_.reset();
  if (part.tag.message.kind == MessageKind::read_response) {
    inbound_next_ = false;
    inbound_offset_ += part.tag.length;
    if (!part.tag.failure && inbound_offset_ != inbound_->request.length) return;
    inbound_ = inbound_->next;
    inbound_offset_ = 0;
    return;
  }
  inbound_next_ = true;
  if (part.tag.message.kind == MessageKind::read_request) ++requests_;
  offset_ += part.tag.length;
  if (offset_ != entry_->length) return;
  entry_ = entry_->next;
  offset_ = 0;
}

void RdCursor::added(SendEntry& entry) {
  if (entry_ != nullptr) return;
  entry_ = &entry;
  offset_ = 0;
}

void RdCursor::added(InboundRead& read) {
  if (inbound_ != nullptr) return;
  inbound_ = &read;
  inbound_offset_ = 0;
}

void RdCursor::remove(const SendEntry& entry) {
  if (entry_ != &entry) return;
  entry_ = entry.next;
  offset_ = 0;
}

void RdCursor::remove(const InboundRead& read) {
  if (inbound_ != &read) return;
  inbound_ = read.next;
  inbound_offset_ = 0;
}

void RdCursor::rewind(SendEntry* first) {
  *this = RdCursor();
  entry_ = first;
}

}  // namespace diwarp::rnic
