// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/types.h"

/// Queue pairs over datagrams.
namespace diwarp {

/// When the target of a Write-Record is told of it.
enum class RecordCompletion : uint8_t {
  complete,      ///< when all its bytes are valid, or nothing new came for `record_timeout`
  last_segment,  ///< when the segment that ends it came (or as above, if that never comes)
  per_segment,   ///< of each segment, as it comes: `byte_count` is the segment's, `tagged_offset`
                 ///< where it lies; no map of the whole message is kept, so over UD duplicates
                 ///< show twice; over RD each byte is reported once
};

/// Sources that a queue pair listens to: addresses that agree with `network` in the first
/// `prefix_length` bits, with source ports from `first_port` to `last_port`.
struct SourceFilter {
  Address network;  ///< its port does not matter
  uint8_t prefix_length = 0;
  uint16_t first_port = 0;
  uint16_t last_port = 65535;
};

/// Bytes of a Global Route Header.
inline constexpr size_t kRouteHeaderBytes = 40;

/// How a queue pair sends to groups (IP_MULTICAST_TTL, IP_MULTICAST_IF, IP_MULTICAST_LOOP).
struct GroupOptions {
  uint8_t hops = 1;  ///< time to live, IPv6: hop limit
  /// Its name; empty: that of the device's address, or the system's choice.
  std::string interface = {};
  bool loopback = true;  ///< members on this host hear it as well
};

/// Reads over datagrams (UD), at both ends.
struct ReadOptions {
  /// A Read of which nothing new came for so long asks again, if `retries` are left, or is over.
  Duration timeout = std::chrono::milliseconds(100);
  /// How long a Read may take in all; zero: no limit.
  Duration deadline{0};
  /// How often what is missing is asked for again.
  uint32_t retries = 0;
  /// Reads that may be under way at once, 1 to 1,024; further ones wait.
  uint32_t max_outstanding = 16;
  /// Requests of one Read that may be under way at once, 1 to 256, of at most 256 KiB each.
  uint32_t window = 2;
  /// Requests of others that may wait for their responses, in all (up to 65,536) and from one
  /// source.
  uint32_t max_responses = 256;
  uint32_t max_responses_per_source = 32;
};

/// The options of queue pairs over datagrams: UD, and RD where an option does not say UD.
struct DatagramOptions {
  /// UDP port, which is also the queue pair's number; 0: a free one.
  uint16_t port = 0;
  /// UD: other queue pairs of this user with this option, of any process, may have the same address
  /// and port, and so the same number. A datagram to a group comes to each of them that joined it;
  /// one to the address itself, an answer for example, comes to one of them, of the system's
  /// choice. For members that only receive. `connect_after` counts as 0.
  bool share_port = false;
  /// A bound UDP descriptor to use instead of opening one; the queue pair owns it afterwards.
  int descriptor = -1;
  /// Sends with another Q_Key are dropped.
  uint32_t q_key = 0;
  /// Largest UDP payload to send, headers and CRC included; 0: as the path MTU allows, or with
  /// `jumbo` 65,507. 64 (RD: 128) to 65,507.
  uint32_t segment = 0;
  /// Let IP fragment datagrams that are longer than the path MTU carries. Each lost fragment then
  /// costs the whole datagram.
  bool jumbo = false;
  /// While the queue pair is polled and nothing sleeps, so many bursts in a row to one destination
  /// earn that a connected socket of its own, which costs a tenth less a message. It goes when the
  /// engine sleeps, or with as many bursts that do not all go there (docs/datagrams.md). 0: never.
  uint32_t connect_after = 1024;
  /// Sends at most this many bytes a second (payload of UDP); 0: no limit. The burst that pacing
  /// lets through at once is what the rate gives in 1 ms, at least one segment.
  uint64_t max_rate = 0;
  /// UD: a Send of which nothing new arrives for so long is given up and its receive is used again.
  Duration message_timeout = std::chrono::milliseconds(100);
  /// UD: Sends of several segments that may be incomplete at once, in all and from one source. They
  /// never hold more than half of the posted receives. Where there is no place, the oldest one of a
  /// source that has finished no message yet gives way.
  uint32_t max_open_messages = 64;
  uint32_t max_open_per_source = 16;
  /// UD: sources that are remembered (against duplicates) at once, in all and from one address. A
  /// new one takes the place of one that has finished no message yet, or else of the one that was
  /// silent longest; of its own address, where that has used up its share. A source is an address,
  /// a port and an incarnation. The share is so large that a host's queue pairs find room, and so
  /// small that one host cannot fill the table.
  uint32_t max_sources = 16384;
  uint32_t max_sources_per_address = 1024;
  /// UD: of `max_sources`, those that have neither finished a message nor shown that they are at
  /// their address: as many as begin to send at the same time. Anybody can make these up.
  uint32_t max_unproven_sources = 1024;
  /// UD: bytes that all that is remembered of sources may take: about 700 for each, and 8 for each
  /// run of messages that are over (at most `closed_per_source` and `refused_per_source`, for Sends
  /// and for Write-Records). With less memory newer sources take the place of older ones sooner,
  /// and messages that are over are forgotten sooner. The default has room for `max_sources`
  /// sources with some disorder, or for 2,000 with as much as may be. RD: the same for the runs of
  /// Write-Records that are over, of all peers. At least 64 KiB.
  size_t max_source_memory = size_t{32} << 20;
  /// UD: a source that was silent for so long is forgotten, and its memory given back. UD and RD:
  /// one that missed an STag is suspected for so long. As long as datagrams may take to arrive, and
  /// an Echo is good for. Above zero.
  Duration source_timeout = std::chrono::seconds(60);
  /// Of each source the newest messages that were delivered are remembered one by one, and older
  /// ones count as over. RD: Write-Records. At least 1.
  uint32_t closed_per_source = 1024;
  /// Messages that were refused, or given up, are remembered apart, the newest so many runs of
  /// them: they do not make older ones count as over. (Of Sends of a source that has finished none
  /// 4.) RD: Write-Records. At least 1.
  uint32_t refused_per_source = 256;
  /// Tagged segments and Read Requests that may name memory in vain (an unknown STag, a wrong
  /// offset, no right to it) within a second, from one source and from all together. UD: segments
  /// of a source that had more are dropped unseen for the rest of the second. While all together
  /// had more, so are those of sources that missed within the last `source_timeout`, or have
  /// neither shown that they are at their address nor finished a message yet. RD: segments that
  /// would be dropped wait, and while all together had more, only addresses that named memory
  /// rightly, and did not miss within `source_timeout`, do not wait. Few enough that guessing takes
  /// long (docs/datagrams.md has the odds), and more than mistakes make.
  uint32_t stag_misses_per_source = 100;
  uint32_t stag_misses = 1000;
  /// Write-Records, at the target.
  RecordCompletion record_completion = RecordCompletion::complete;
  /// UD: a record of which nothing new arrives for so long is reported as it is.
  Duration record_timeout = std::chrono::milliseconds(100);
  /// Records that may be open at once, in all and from one source. One more evicts the oldest,
  /// which is reported as it is.
  uint32_t max_open_records = 256;
  uint32_t max_open_records_per_source = 64;
  /// Ranges of one validity map (16 bytes each, taken as they are needed): a segment that would add
  /// one more is dropped.
  uint32_t max_record_ranges = 4096;
  /// Maps with several ranges that may exist at once, those of completions included that the
  /// application has not released.
  uint32_t max_validity_maps = 512;
  ReadOptions read = {};
  /// Entries that the error queue keeps; newer ones give way.
  uint32_t error_queue = 64;
  /// Error messages sent to sources, a second.
  uint32_t error_rate = 1000;
  /// Sources to listen to; empty: all.
  std::vector<SourceFilter> sources = {};
  GroupOptions group = {};
  /// The first 40 bytes of each receive get a Global Route Header, as InfiniBand's datagrams have
  /// it: it names the addresses that the message came from and to (a group's, where it was sent to
  /// one), IPv4 ones as ::ffff:a.b.c.d. The message follows, and `byte_count` of the completion
  /// counts both. A receive shorter than that is too small for any message.
  bool route_header = false;
};

}  // namespace diwarp
