// SPDX-License-Identifier: Apache-2.0
#include "rnic/rd_cursor.h"

#include <algorithm>

#include "rnic/rd_requests.h"

namespace diwarp::rnic {

using dgram::MessageKind;

std::optional<RdPart> RdCursor::next(const SendQueue& sends, size_t segment,
                                     size_t response) const {
  if (closing) return RdPart{.tag = {.message = *closing}, .skip = true};
  const bool waits =
      entry != nullptr && is_read(*entry) && requests >= dgram::kMaxReadRequests;
  const bool has_entry = entry != nullptr && !waits;
  if (inbound != nullptr && (inbound_next || !has_entry)) return next_response(response);
  if (!has_entry) return std::nullopt;
  return next_of_entry(sends, segment);
}

RdPart RdCursor::next_response(size_t response) const {
  const uint32_t left = inbound->request.length - inbound_offset;
  const auto length = static_cast<uint32_t>(std::min<size_t>(left, response));
  return {.tag = {.message = {MessageKind::read_response, inbound->request.sink_stag},
                  .object = inbound->index,
                  .offset = inbound_offset,
                  .length = inbound->failed ? 0 : length,
                  .failure = inbound->failed}};
}

RdPart RdCursor::next_of_entry(const SendQueue& sends, size_t segment) const {
  const uint64_t left = entry->length - offset;
  const bool asks = is_read(*entry);
  const uint64_t most = asks ? rdmap::kMaxReadRequest : segment;
  return {.tag = {.message = asks ? dgram::MessageName{MessageKind::read_request, request_msn}
                                  : message_of(*entry),
                  .object = sends.place_of(*entry),
                  .offset = static_cast<uint32_t>(offset),
                  .length = static_cast<uint32_t>(std::min(left, most))}};
}

void RdCursor::advance(const RdPart& part) {
  if (part.skip) return closing.reset();
  if (part.tag.message.kind == MessageKind::read_response) {
    inbound_next = false;
    inbound_offset += part.tag.length;
    if (!part.tag.failure && inbound_offset != inbound->request.length) return;
    inbound = inbound->next;
    inbound_offset = 0;
    return;
  }
  inbound_next = true;
  if (part.tag.message.kind == MessageKind::read_request) {
    ++requests;
    ++request_msn;
  }
  offset += part.tag.length;
  if (offset != entry->length) return;
  entry = entry->next;
  offset = 0;
}

}  // namespace diwarp::rnic
