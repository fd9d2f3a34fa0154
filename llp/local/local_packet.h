// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "diwarp/address.h"

/// What two devices of one host say to each other over their Unix socket. The one that connected
/// offers rings and fills them; the other one takes them and reads.
namespace diwarp::llp {

/// Why a ring is not taken.
enum class RingRefusal : uint8_t {
  none,
  no_queue_pair,  ///< nothing receives at that address
  not_yours,      ///< the source's address is no socket of the user's
  too_many,       ///< there is no place for another ring
  memory,         ///< the memory is none that can be shared safely, or cannot be mapped
};

/// For the log.
std::string_view explain(RingRefusal why);

/// What a ring carries.
enum class RingKind : uint8_t { datagrams, stream };

/// From where to where a ring leads: the addresses and ports that a datagram bears, or those of the
/// two ends of a TCP connection.
struct LocalRoute {
  RingKind kind = RingKind::datagrams;
  Address from;
  Address to;
};

/// Of the port that the route ends at, and, of a stream, of the one that it begins at.
constexpr uint32_t route_hash(RingKind kind, uint16_t to_port, uint16_t from_port) {
  return kind == RingKind::datagrams ? to_port : uint32_t{to_port} * 31 + from_port;
}

struct LocalPacket {
  enum class Kind : uint8_t {
    ask,      ///< from the producer: does `route` end at your device? `number` names the question
    here,     ///< its answer: yes
    absent,   ///< or no
    offer,    ///< from the producer: ring `number`, whose memory comes with it, for `route`
    taken,    ///< its answer: from now on the ring is read
    refused,  ///< or no, for `refusal`
    wake,     ///< from the producer: there is something in rings that sleep
    end,      ///< from the producer: nothing more comes over ring `number`
    room,     ///< from the consumer: there is room in rings whose producers wait for some
  };

  Kind kind = Kind::ask;
  RingRefusal refusal = RingRefusal::none;
  uint32_t number = 0;
  uint64_t bytes = 0;  ///< of the ring's entries
  bool crc = false;    ///< taken: the consumer wants CRCs computed
  LocalRoute route = {};
};

inline constexpr size_t kLocalPacketBytes = 64;
using EncodedLocalPacket = std::array<std::byte, kLocalPacketBytes>;

EncodedLocalPacket encode(const LocalPacket& packet);
/// Nothing where the bytes are no packet.
std::optional<LocalPacket> decode_local_packet(ConstBytes bytes);

}  // namespace diwarp::llp
