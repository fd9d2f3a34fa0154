// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "diwarp/types.h"

/// MPA's start-up frames (RFC 5044 section 7.1): key (16), flags (1), revision (1), private data
/// length (2), private data. With revision 2 the private data may begin with four bytes of enhanced
/// data (RFC 6581 section 9).
namespace diwarp::mpa {

inline constexpr size_t kStartupHeaderBytes = 20;
inline constexpr size_t kMaxPrivateData = diwarp::kMaxPrivateData;
inline constexpr size_t kEnhancedBytes = 4;
inline constexpr size_t kMaxStartupBytes = kStartupHeaderBytes + kMaxPrivateData;
inline constexpr uint8_t kHighestRevision = 2;

/// The private data that is left to the application.
constexpr size_t max_private_data(uint8_t revision) {
  return revision >= 2 ? kMaxPrivateData - kEnhancedBytes : kMaxPrivateData;
}

enum class FrameKind : uint8_t { request, reply };

/// A depth that is not negotiated (RFC 6581 section 9.1).
inline constexpr uint16_t kNotNegotiated = 0x3fff;
inline constexpr uint16_t kMaxDepth = kNotNegotiated - 1;

/// Kinds of ready-to-receive message. A request names those that its sender can send, a reply those
/// that its sender wants to have one of.
struct ReadyKinds {
  bool send = false;   ///< flag B
  bool write = false;  ///< flag C
  bool read = false;   ///< flag D
  friend bool operator==(const ReadyKinds&, const ReadyKinds&) = default;
};

/// The words that revision 2 adds to a frame.
struct Enhanced {
  bool peer_to_peer = false;  ///< flag A
  ReadyKinds ready = {};
  uint16_t ird = 0;  ///< 14 bits
  uint16_t ord = 0;  ///< 14 bits
  friend bool operator==(const Enhanced&, const Enhanced&) = default;
};

struct StartupFrame {
  FrameKind kind = FrameKind::request;
  bool markers = false;  ///< M: the sender of this frame wants to receive markers
  bool crc = true;       ///< C
  bool reject = false;   ///< R: meaningful in replies only
  uint8_t revision = 1;
  std::optional<Enhanced> enhanced = {};  ///< S; revision 2 only
  ConstBytes private_data = {};           ///< without the enhanced data
};

enum class StartupStatus : uint8_t {
  ok,
  incomplete,    ///< the bytes so far could be a frame
  bad_key,       ///< not MPA, or the wrong kind of frame
  bad_length,    ///< more than 512 bytes of private data announced
  bad_enhanced,  ///< enhanced data announced, but there is no room for it
};

struct ParsedStartup {
  StartupStatus status = StartupStatus::incomplete;
  StartupFrame frame = {};  ///< private_data points into the parsed bytes
  size_t consumed = 0;
};

/// Bytes of the whole frame.
size_t startup_bytes(const StartupFrame& frame);

/// Writes a frame; `out` must hold startup_bytes(), which is at most kMaxStartupBytes. Returns
/// bytes written.
size_t encode(const StartupFrame& frame, Bytes out);

/// Reads a frame of the expected kind from the front of `in`. A wrong key is told at its first
/// wrong byte, so that a peer that is not MPA is not waited for. Any revision is read; the enhanced
/// data of revision 2 alone. A reject may announce enhanced data and have none.
ParsedStartup parse_startup(ConstBytes in, FrameKind expected);

}  // namespace diwarp::mpa
