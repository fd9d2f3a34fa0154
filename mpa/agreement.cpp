// SPDX-License-Identifier: Apache-2.0
#include "mpa/agreement.h"

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
uint16_t depth(uint16_t wish, uint16_t peer) {
  static_assert(kNotNegotiated > kMaxDepth);
  return std::min(wish, peer);  // guard(rows:depth-lowered): => return wish;
}

/// What a reply says to a request's depth.
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
AgreementFault check_enhanced(const Enhanced& reply, const Wishes& wishes, Agreement& agreement) {
  // guard(rows:not-negotiated-reply): condition => reply.ord > wishes.ird
  // guard(rows:insufficient-ird): condition => false
  if (reply.ord != kNotNegotiated && reply.ord > wishes.ird)
    return AgreementFault::insufficient_ird;
  agreement.ord = depth(wishes.ord, reply.ird);
  agreement.ird = depth(wishes.ird, reply.ord);
  if (!wishes.peer_to_peer || !reply.peer_to_peer) return AgreementFault::none;  // guard(startup)
  agreement.ready = prefer(reply.ready, agreement.ord != 0);
  // guard(rows:no-matching-ready): no_matching_ready => none
  return agreement.ready == ReadyToReceive::none ? AgreementFault::no_matching_ready
                                                 : AgreementFault::none;
}

AgreementFault check_basics(const StartupFrame& reply, const Wishes& wishes) {
  // guard(startup)
  if (reply.revision == 0 || reply.revision > wishes.revision) return AgreementFault::revision;
  // guard(rows:reject-told)
  if (reply.reject) return AgreementFault::rejected;  // in a lower revision, too
  // guard(rows:reply-revision)
  if (reply.revision < wishes.revision) return AgreementFault::revision;
  // guard(rows:reply-enhanced-checked): wishes.revision == 2 && !reply.enhanced => false
  return wishes.revision == 2 && !reply.enhanced ? AgreementFault::not_enhanced
                                                 : AgreementFault::none;
}

}  // namespace

StartupFrame make_request(const Wishes& wishes, ConstBytes private_data) {
  StartupFrame request{.kind = FrameKind::request,
                       .markers = wishes.markers,
                       .crc = wishes.crc,  // guard(rows:crc-default): wishes.crc => false
                       .revision = wishes.revision,
                       .private_data = private_data};
  if (wishes.revision < 2) return request;
  // guard(rows:a-bit-asked): .peer_to_peer = wishes.peer_to_peer => .peer_to_peer = false
  // guard(rows:kinds-without-a): wishes.peer_to_peer ? kAllKinds : ReadyKinds{} => kAllKinds
  request.enhanced = {.peer_to_peer = wishes.peer_to_peer,
                      .ready = wishes.peer_to_peer ? kAllKinds : ReadyKinds{},
                      .ird = wishes.ird,
                      .ord = wishes.ord};
  return request;
}

AgreementFault check_request(const StartupFrame& request) {
  assert(request.kind == FrameKind::request);
  // guard(rows:revision-checked): request.revision == 0 || request.revision > kHighestRevision =>
  //     false
  return request.revision == 0 || request.revision > kHighestRevision ? AgreementFault::revision
                                                                      : AgreementFault::none;
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

Answer answer_request(const StartupFrame& request, const Wishes& wishes) {
  assert(check_request(request) == AgreementFault::none);
  Answer answer;
  Agreement& agreement = answer.agreement;
  // guard(rows:markers-if-asked): request.markers => wishes.markers
  // guard(rows:crc-if-either): without || wishes.crc
  agreement = {.crc = request.crc || wishes.crc,
               .send_markers = request.markers,
               .receive_markers = wishes.markers,
               .revision = request.revision,
               .ord = wishes.ord,
               .ird = wishes.ird};
  answer.reply = {.kind = FrameKind::reply,
                  .markers = wishes.markers,
                  .crc = agreement.crc,
                  // guard(rows:answer-revision): request.revision => kHighestRevision
                  .revision = request.revision};
  // guard(rows:reply-enhanced): answer => answer.reply.enhanced.emplace(), answer
  if (!request.enhanced) return answer;
  const Enhanced& peer = *request.enhanced;
  agreement.ord = depth(wishes.ord, peer.ird);
  agreement.ird = depth(wishes.ird, peer.ord);
  agreement.ready = choose(peer, agreement.ird);
  // guard(rows:a-bit-answered): peer.peer_to_peer => false
  // guard(rows:kind-chosen): agreement.ready => ReadyToReceive::none
  answer.reply.enhanced = Enhanced{.peer_to_peer = peer.peer_to_peer,
                                   .ready = kinds_of(agreement.ready),
                                   .ird = answered(agreement.ird, peer.ord),
                                   .ord = answered(agreement.ord, peer.ird)};
  return answer;
}

AgreementResult check_reply(const StartupFrame& reply, const Wishes& wishes) {
  assert(reply.kind == FrameKind::reply);
  AgreementResult result;
  result.fault = check_basics(reply, wishes);
  if (result.fault != AgreementFault::none) return result;
  // guard(rows:crc-if-either): without || wishes.crc
  result.agreement = {.crc = reply.crc || wishes.crc,
                      .send_markers = reply.markers,
                      .receive_markers = wishes.markers,
                      .revision = reply.revision,
                      .ord = wishes.ord,
                      .ird = wishes.ird};
  if (reply.enhanced) result.fault = check_enhanced(*reply.enhanced, wishes, result.agreement);
  return result;
}

}  // namespace diwarp::mpa
