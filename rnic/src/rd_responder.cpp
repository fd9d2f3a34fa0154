// SPDX-License-Identifier: Apache-2.0
#include "rnic/rd_responder.h"

#include "rdmap/terminate.h"
#include "rnic/queue_pair.h"

namespace diwarp::rnic {

namespace {

using dgram::MessageKind;

/// A response that was delivered whole may fail here before that is known, and frees its place there
/// first. So as many again may wait for their failure to be acknowledged.
constexpr uint32_t kMaxInboundReads = 2 * dgram::kMaxReadRequests;

uint32_t unanswered(const RdPeer& peer) {
  uint32_t count = 0;
  for (const InboundRead* read = peer.inbound; read != nullptr; read = read->next)
    count += read->failed ? 0 : 1;
  return count;
}

}  // namespace

/// A Read of no length reads nothing: its STag and offset are not looked at (RFC 5040 section 5.2).
Judgement RdResponder::check(const rdmap::ReadRequest& request) const {
  if (request.length == 0) return Judgement::taken();
  return judge_read(ddp::check_tagged(queue_pair_.regions().find(request.source_stag),
                                      queue_pair_.domain_number(), queue_pair_.number(),
                                      Access::remote_read, request.source_offset, request.length));
}

Judgement RdResponder::take_request(RdPeer& peer, const rdmap::ReadRequest& request) {
  if (const Judgement judgement = check(request); judgement.fault) return judgement;
  if (peer.inbound_count >= kMaxInboundReads || unanswered(peer) >= dgram::kMaxReadRequests)
    return {.drop = Counter::drop_share, .fault = rdmap::fault::kStreamCatastrophic};
  if (!reads_.reserve(1)) return Judgement::dropped(Counter::drop_no_memory);
  InboundRead& read = reads_.take();
  read.request = request;
  ++peer.inbound_count;
  append_to(peer.inbound, read);
  if (peer.cursor.inbound == nullptr) {
    peer.cursor.inbound = &read;
    peer.cursor.inbound_offset = 0;
  }
  return Judgement::taken();
}

void RdResponder::fail(RdPeer& peer, uint32_t index, TerminateCode code) {
  InboundRead& read = reads_.at(index);
  peer.sender.give_up({MessageKind::read_response, read.request.sink_stag});
  read.failed = true;
  read.code = code;
  if (!read.cut) return;
  // All of it was cut: the failure has its turn after those that wait.
  take_out_of(peer.inbound, read);
  append_to(peer.inbound, read);
  if (peer.cursor.inbound != nullptr) return;
  peer.cursor.inbound = &read;
  peer.cursor.inbound_offset = 0;
}

void RdResponder::acknowledged(RdPeer& peer, const dgram::TxTag& tag) {
  InboundRead& read = reads_.at(tag.object);
  if (!tag.failure && tag.offset + tag.length != read.request.length) return;
  if (!tag.failure) counters_.add(Counter::reads_served);
  finish(peer, read);
}

void RdResponder::refused(RdPeer& peer, const dgram::TxTag& tag, TerminateCode code) {
  if (!tag.failure) fail(peer, tag.object, code);
}

/// Nothing refers to it any more.
void RdResponder::finish(RdPeer& peer, InboundRead& read) {
  if (peer.cursor.inbound == &read) {
    peer.cursor.inbound = read.next;
    peer.cursor.inbound_offset = 0;
  }
  take_out_of(peer.inbound, read);
  --peer.inbound_count;
  reads_.give(read);
}

void RdResponder::drop(RdPeer& peer) {
  while (peer.inbound != nullptr) finish(peer, *peer.inbound);
}

}  // namespace diwarp::rnic
