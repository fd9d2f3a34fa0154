// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "diwarp/connect_options.h"
#include "mpa/startup.h"

/// The parameters that two sides negotiate at start-up (RFC 5044 section 7.1, RFC 6581).
namespace diwarp::mpa {

/// The result, which both sides know after the frames were exchanged.
struct NegotiatedParameters {
  bool crc = true;
  bool send_markers = false;     ///< the peer wants them
  bool receive_markers = false;  ///< this side asked for them
  uint8_t revision = 1;
  uint16_t ord = 16;  ///< this side's Reads and atomics that may be outstanding
  uint16_t ird = 16;  ///< and those of the peer that this side answers at a time
  /// The initiator's first FPDU, which only makes the responder ready to send (RFC 6581 section 4).
  ReadyToReceive ready = ReadyToReceive::none;
};

/// The proposal of one side to the other.
struct MpaProposal {
  bool crc = true;
  bool markers = false;  ///< to receive them; a peer that wants them always gets them
  uint16_t ord = 16;
  uint16_t ird = 16;
  uint8_t revision = 2;      ///< the initiator's; a responder takes the request's
  bool peer_to_peer = true;  ///< the initiator's; a responder takes the request's
};

enum class NegotiationFault : uint8_t {
  none,
  revision,           ///< the peer speaks another revision of MPA
  rejected,           ///< the reply has the reject bit
  not_enhanced,       ///< the reply lacks the enhanced data that the request had
  insufficient_ird,   ///< the responder wants more Reads answered than was offered
  no_matching_ready,  ///< the reply names no ready-to-receive message that was offered
};

/// The request that makes this proposal. All kinds of ready-to-receive message are offered.
StartupFrame make_request(const MpaProposal& proposal, ConstBytes private_data);

/// Whether a request can be answered with anything but a reject.
NegotiationFault check_request(const StartupFrame& request);

/// A reject of `request` that it understands: in its revision, or in the highest there is here.
StartupFrame make_reject(const StartupFrame& request, ConstBytes private_data);

struct Answer {
  StartupFrame reply = {};  ///< without private data
  NegotiatedParameters parameters = {};
};

/// The responder's view of a request that passed check_request(). CRC is used if either side asks;
/// the depths are the lower of what one side wants and the other gives, so the initiator may always
/// lower its own and never has to raise anything. Of the kinds of ready-to-receive message that are
/// offered, a Write is preferred, then a Read, then a Send; a Write is asked for if none is.
Answer answer_request(const StartupFrame& request, const MpaProposal& proposal);

struct NegotiationResult {
  NegotiationFault fault = NegotiationFault::none;
  NegotiatedParameters parameters = {};
};

/// The initiator's view of the reply to make_request(proposal). The first fault in
/// NegotiationFault's order counts. A responder that does not speak of peer-to-peer gets no
/// ready-to-receive message.
NegotiationResult check_reply(const StartupFrame& reply, const MpaProposal& proposal);

}  // namespace diwarp::mpa
