// SPDX-License-Identifier: Apache-2.0
#include "mpa/negotiated_parameters.h"

#include <algorithm>
#include <cassert>

namespace diwarp::mpa {
namespace {

// guard(rows:kinds-offered): .read = true => .read = false
constexpr ReadyKinds kAllKinds{.send = true, .write = true, .read = true};

/// A Read takes one of the initiator's outstanding ones.
ReadyToReceive prefer(const ReadyKinds& kinds, bool may_read) {
  if (kinds.write) return ReadyToReceive::write;
  // guard(startup): may_read => (may_read || true)
  if (kinds.read && may_read) return ReadyToReceive::read;
  return kinds.send ? ReadyToReceive::send : ReadyToReceive::none;
}

ReadyKinds kinds_of(ReadyToReceive ready) {
  return {.send = ready == ReadyToReceive::send,
          .write = ready == ReadyToReceive::write,
          .read = ready == ReadyToReceive::read};
}

/// A depth that this side would have, as far as the peer's counterpart allows. A peer that does not
/// negotiate allows any.
uint16_t depth(uint16_t proposed, uint16_t peer) {
  static_assert(kNotNegotiated > kMaxDepth);
  return std::min(proposed, peer);  // guard(rows:depth-lowered): => return proposed;
}

/// The answer of a reply to a request's depth.
uint16_t answered(uint16_t agreed, uint16_t peer) {
  // guard(rows:not-negotiated): => return agreed;
  return peer == kNotNegotiated ? kNotNegotiated : agreed;
}

/// The kind that `request` has to send; none if it does not ask for peer-to-peer.
ReadyToReceive choose(const Enhanced& request, uint16_t ird) {
  if (!request.peer_to_peer) return ReadyToReceive::none;  // guard(rows:kinds-ignored)
  const ReadyToReceive chosen = prefer(request.ready, ird != 0);
  return chosen == ReadyToReceive::none ? ReadyToReceive::write : chosen;
}

/// Depths and the ready-to-receive message, of a reply with enhanced data.
NegotiationFault check_enhanced(const Enhanced& reply, const MpaProposal& proposal,
                                NegotiatedParameters& parameters) {
  // guard(rows:not-negotiated-reply): condition => reply.ord > proposal.ird
  // guard(rows:insufficient-ird): condition => false
  if (reply.ord != kNotNegotiated && reply.ord > proposal.ird)
    return NegotiationFault::insufficient_ird;
  parameters.ord = depth(proposal.ord, reply.ird);
  parameters.ird = depth(proposal.ird, reply.ord);
  if (!proposal.peer_to_peer || !reply.peer_to_peer)
    return NegotiationFault::none;  // guard(startup)
  parameters.ready = prefer(reply.ready, parameters.ord != 0);
  // guard(rows:no-matching-ready): no_matching_ready => none
  return parameters.ready == ReadyToReceive::none ? NegotiationFault::no_matching_ready
                                                  : NegotiationFault::none;
}

NegotiationFault check_basics(const StartupFrame& reply, const MpaProposal& proposal) {
  // guard(startup)
  if (reply.revision == 0 || reply.revision > proposal.revision) return NegotiationFault::revision;
  // guard(rows:reject-told)
  if (reply.reject) return NegotiationFault::rejected;  // in a lower revision, too
  // guard(rows:reply-revision)
  if (reply.revision < proposal.revision) return NegotiationFault::revision;
  // guard(rows:reply-enhanced-checked): proposal.revision == 2 && !reply.enhanced => false
  return proposal.revision == 2 && !reply.enhanced ? NegotiationFault::not_enhanced
                                                   : NegotiationFault::none;
}

}  // namespace

StartupFrame make_request(const MpaProposal& proposal, ConstBytes private_data) {
  StartupFrame request{.kind = FrameKind::request,
                       .markers = proposal.markers,
                       .crc = proposal.crc,  // guard(rows:crc-default): proposal.crc => false
                       .revision = proposal.revision,
                       .private_data = private_data};
  if (proposal.revision < 2) return request;
  // guard(rows:a-bit-asked): .peer_to_peer = proposal.peer_to_peer => .peer_to_peer = false
  // guard(rows:kinds-without-a): proposal.peer_to_peer ? kAllKinds : ReadyKinds{} => kAllKinds
  request.enhanced = {.peer_to_peer = proposal.peer_to_peer,
                      .ready = proposal.peer_to_peer ? kAllKinds : ReadyKinds{},
                      .ird = proposal.ird,
                      .ord = proposal.ord};
  return request;
}

NegotiationFault check_request(const StartupFrame& request) {
  assert(request.kind == FrameKind::request);
  // guard(rows:revision-checked): request.revision == 0 || request.revision > kHighestRevision =>
  //     false
  return request.revision == 0 || request.revision > kHighestRevision ? NegotiationFault::revision
                                                                      : NegotiationFault::none;
}

StartupFrame make_reject(const StartupFrame& request, ConstBytes private_data) {
  StartupFrame reply{.kind = FrameKind::reply,
                     .crc = request.crc,
                     .reject = true,
                     .revision = std::clamp(request.revision, uint8_t{1}, kHighestRevision),
                     .private_data = private_data};
  if (request.enhanced) reply.enhanced = Enhanced{.peer_to_peer = request.enhanced->peer_to_peer};
  return reply;
}

Answer answer_request(const StartupFrame& request, const MpaProposal& proposal) {
  assert(check_request(request) == NegotiationFault::none);
  Answer answer;
  NegotiatedParameters& parameters = answer.parameters;
  // guard(rows:markers-if-asked): request.markers => proposal.markers
  // guard(rows:crc-if-either): without || proposal.crc
  parameters = {.crc = request.crc || proposal.crc,
                .send_markers = request.markers,
                .receive_markers = proposal.markers,
                .revision = request.revision,
                .ord = proposal.ord,
                .ird = proposal.ird};
  answer.reply = {.kind = FrameKind::reply,
                  .markers = proposal.markers,
                  .crc = parameters.crc,
                  // guard(rows:answer-revision): request.revision => kHighestRevision
                  .revision = request.revision};
  // guard(rows:reply-enhanced): answer => answer.reply.enhanced.emplace(), answer
  if (!request.enhanced) return answer;
  const Enhanced& peer = *request.enhanced;
  parameters.ord = depth(proposal.ord, peer.ird);
  parameters.ird = depth(proposal.ird, peer.ord);
  parameters.ready = choose(peer, parameters.ird);
  // guard(rows:a-bit-answered): peer.peer_to_peer => false
  // guard(rows:kind-chosen): parameters.ready => ReadyToReceive::none
  answer.reply.enhanced = Enhanced{.peer_to_peer = peer.peer_to_peer,
                                   .ready = kinds_of(parameters.ready),
                                   .ird = answered(parameters.ird, peer.ord),
                                   .ord = answered(parameters.ord, peer.ird)};
  return answer;
}

NegotiationResult check_reply(const StartupFrame& reply, const MpaProposal& proposal) {
  assert(reply.kind == FrameKind::reply);
  NegotiationResult result;
  result.fault = check_basics(reply, proposal);
  if (result.fault != NegotiationFault::none) return result;
  // guard(rows:crc-if-either): without || proposal.crc
  result.parameters = {.crc = reply.crc || proposal.crc,
                       .send_markers = reply.markers,
                       .receive_markers = proposal.markers,
                       .revision = reply.revision,
                       .ord = proposal.ord,
                       .ird = proposal.ird};
  if (reply.enhanced) result.fault = check_enhanced(*reply.enhanced, proposal, result.parameters);
  return result;
}

}  // namespace diwarp::mpa
