// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_responder.h"

#include "rdmap/terminate.h"

namespace diwarp::rnic {

namespace {

using dgram::MessageKind;

/// A response that was delivered whole may fail here before that is known, and frees its place
/// there first. So as many again may wait for their failure to be acknowledged.
constexpr uint32_t kMaxInboundReads = 2 * dgram::kMaxReadRequests;

/// Whether the peer may not have one more Read here.
bool is_full(const RdPeer& peer) {
  uint32_t all = 0;
  uint32_t unanswered = 0;
  for (const InboundRead& read : peer.work.inbound_reads) {
    ++all;
    unanswered += read.failed ? 0 : 1;
  }
  return all >= kMaxInboundReads || unanswered >= dgram::kMaxReadRequests;
}

}  // namespace

/// A Read of no length reads nothing: its STag and offset are not looked at (RFC 5040 section 5.2).
Verdict RdResponder::check(const rdmap::ReadRequest& request) const {
  if (request.length == 0) return Verdict::accepted();
  return read_verdict(protection_
                          .check_tagged(request.source_stag, Access::remote_read,
                                        request.source_offset, request.length)
                          .fault);
}

Verdict RdResponder::take_request(RdPeer& peer, const rdmap::ReadRequest& request) {
  if (const Verdict verdict = check(request); verdict.fault) return verdict;
  if (is_full(peer))
    return {.drop = Counter::drop_share, .fault = rdmap::fault::kStreamCatastrophic};
  if (!reads_.reserve(1)) return Verdict::dropped(Counter::drop_no_memory);
  InboundRead& read = reads_.take();
  read.request = request;
  peer.work.inbound_reads.push_back(read);
  peer.work.cursor.added(read);
  return Verdict::accepted();
}

void RdResponder::fail(RdPeer& peer, uint32_t index, TerminateCode code) {
  InboundRead& read = reads_.at(index);
  peer.sender().scoreboard().give_up({MessageKind::read_response, read.request.sink_stag});
  read.failed = true;
  read.code = code;
  if (!read.cut) return;
  // All of it was cut: the failure has its turn after those that wait.
  peer.work.inbound_reads.remove(read);
  peer.work.inbound_reads.push_back(read);
  peer.work.cursor.added(read);
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
  peer.work.cursor.remove(read);
  peer.work.inbound_reads.remove(read);
  reads_.give(read);
}

void RdResponder::drop(RdPeer& peer) {
  while (InboundRead* const read = peer.work.inbound_reads.front()) finish(peer, *read);
}

}  // namespace diwarp::rnic
