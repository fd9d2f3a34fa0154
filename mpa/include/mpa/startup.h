// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"

/// MPA's start-up frames (RFC 5044 section 7.1): key (16), flags (1), revision (1), private data
/// length (2), private data.
namespace diwarp::mpa {

inline constexpr size_t kStartupHeaderBytes = 20;
inline constexpr size_t kMaxPrivateData = diwarp::kMaxPrivateData;
inline constexpr uint8_t kRevision = 1;

enum class FrameKind : uint8_t { request, reply };

struct StartupFrame {
  FrameKind kind = FrameKind::request;
  bool markers = false;  ///< M: the sender of this frame wants to receive markers
  bool crc = true;       ///< C
  bool reject = false;   ///< R: meaningful in replies only
  uint8_t revision = kRevision;
  ConstBytes private_data = {};
};

enum class StartupStatus : uint8_t {
  ok,
  incomplete,  ///< the bytes so far could be a frame
  bad_key,     ///< not MPA, or the wrong kind of frame
  bad_length,  ///< more than 512 bytes of private data announced
};

struct ParsedStartup {
  StartupStatus status = StartupStatus::incomplete;
  StartupFrame frame = {};  ///< private_data points into the parsed bytes
  size_t consumed = 0;
};

/// Writes a frame; `out` must hold 20 + private_data.size() bytes. Returns bytes written.
size_t encode(const StartupFrame& frame, Bytes out);

/// Reads a frame of the expected kind from the front of `in`. A wrong key is told at its first
/// wrong byte, so that a peer that is not MPA is not waited for.
ParsedStartup parse_startup(ConstBytes in, FrameKind expected);

/// What both sides know after the frames were exchanged.
struct Agreement {
  bool crc = true;
  bool send_markers = false;     ///< the peer wants them
  bool receive_markers = false;  ///< this side asked for them
  uint8_t revision = 1;
  uint16_t ord = 16;  ///< this side's Reads and atomics that may be outstanding
  uint16_t ird = 16;  ///< and those of the peer that this side answers at a time
  /// The initiator's first FPDU, which only makes the responder ready to send (RFC 6581 section 4).
  ReadyToReceive ready = ReadyToReceive::none;
};

enum class AgreementFault : uint8_t {
  none,
  revision,  ///< the peer speaks another revision of MPA
  markers,   ///< the peer wants markers, which this side does not send
  rejected,  ///< the reply has the reject bit
};

struct AgreementResult {
  AgreementFault fault = AgreementFault::none;
  Agreement agreement = {};
};

/// The responder's view of a request (RFC 5044 section 7.1): CRC is used if either side asks. The
/// first fault in the order revision, markers counts; the reject bit means nothing here.
AgreementResult judge_request(const StartupFrame& request, bool local_crc);

/// The initiator's view of the reply. The order of the faults is revision, rejected, markers.
AgreementResult judge_reply(const StartupFrame& reply, bool local_crc);

}  // namespace diwarp::mpa
