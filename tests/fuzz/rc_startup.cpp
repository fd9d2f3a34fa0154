// SPDX-License-Identifier: Apache-2.0
#include "fuzz/rc_startup.h"

#include <algorithm>
#include <vector>

namespace diwarp::fuzz {
namespace {

using Frame = std::vector<std::byte>;

/// Depths are small, so that their ends are reached.
mpa::MpaProposal proposal_from(Input& in) {
  const unsigned flags = in.u8();
  const unsigned depths = in.u8();
  return {.crc = (flags & 1U) == 0,  // mostly with, as zeros are what an input ends with
          .markers = (flags & 2U) != 0,
          .ord = static_cast<uint16_t>(1 + (depths & 3U)),
          .ird = static_cast<uint16_t>(depths >> 2U & 3U),
          .revision = static_cast<uint8_t>((flags & 4U) != 0 ? 1 : 2),
          .peer_to_peer = (flags & 8U) != 0};
}

Frame encoded(const mpa::StartupFrame& frame) {
  Frame bytes(mpa::startup_bytes(frame));
  mpa::encode(frame, bytes);
  return bytes;
}

/// Overwrites a part with what the input says, and cuts.
void spoil(Frame& frame, Input& in) {
  const size_t at = in.below(mpa::kStartupHeaderBytes + mpa::kEnhancedBytes);
  const Frame with = in.bytes(in.u8() & 7U);
  for (size_t i = 0; i < with.size() && at + i < frame.size(); ++i) frame[at + i] = with[i];
  if (in.flag()) frame.resize(std::min<size_t>(frame.size(), in.u8()));
}

std::optional<mpa::NegotiatedParameters> connect(const mpa::MpaProposal& mine,
                                                 const mpa::MpaProposal& of_peer, Input& in,
                                                 bool spoils) {
  const mpa::StartupFrame request = mpa::make_request(mine, {});
  Frame reply = encoded(mpa::answer_request(request, of_peer).reply);
  if (spoils) spoil(reply, in);
  const mpa::ParsedStartup parsed = mpa::parse_startup(reply, mpa::FrameKind::reply);
  if (parsed.status != mpa::StartupStatus::ok) return std::nullopt;
  const mpa::NegotiationResult result = mpa::check_reply(parsed.frame, mine);
  if (result.fault != mpa::NegotiationFault::none) return std::nullopt;
  return result.parameters;
}

std::optional<mpa::NegotiatedParameters> accept(const mpa::MpaProposal& mine,
                                                const mpa::MpaProposal& of_peer, Input& in,
                                                bool spoils) {
  Frame request = encoded(mpa::make_request(of_peer, {}));
  if (spoils) spoil(request, in);
  const mpa::ParsedStartup parsed = mpa::parse_startup(request, mpa::FrameKind::request);
  if (parsed.status != mpa::StartupStatus::ok) return std::nullopt;
  if (mpa::check_request(parsed.frame) != mpa::NegotiationFault::none) return std::nullopt;
  return mpa::answer_request(parsed.frame, mine).parameters;
}

}  // namespace

std::optional<RcStart> start_up(Input& in) {
  const unsigned how = in.u8();
  const bool initiator = (how & 1U) != 0;
  const bool spoils = (how & 0xE0U) == 0xE0U;
  const mpa::MpaProposal mine = proposal_from(in);
  const mpa::MpaProposal of_peer = proposal_from(in);
  const auto parameters =
      initiator ? connect(mine, of_peer, in, spoils) : accept(mine, of_peer, in, spoils);
  if (!parameters) return std::nullopt;
  return RcStart{initiator, *parameters};
}

}  // namespace diwarp::fuzz
