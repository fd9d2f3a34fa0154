// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/device_options.h"
#include "diwarp/export.h"
#include "diwarp/flags.h"
#include "diwarp/queue_options.h"
#include "diwarp/stream_options.h"
#include "diwarp/types.h"
#include "diwarp/validity_map.h"

/// The attributes, events and errors of the objects of the verbs.
namespace diwarp {

/// What some devices can do and others cannot. A software device can do all of it.
enum class Capability : uint32_t {
  none = 0,
  atomics = 1,            ///< fetch_add, compare_swap, swap
  immediate_data = 2,     ///< over RC
  memory_windows = 4,     ///< requests that bind windows
  fast_registration = 8,  ///< requests that register memory
  shared_receive_queues = 16,
  chosen_stags = 32,        ///< MemoryRegion::with_stag()
  adopted_streams = 64,     ///< connect_on(), accept_on(), modify_to_rtr()
  markers = 128,            ///< MPA markers, where an application asks for them
  held_messages = 256,      ///< ReceiveNotReady::hold
  terminate_codes = 512,    ///< TerminateInfo of a connection that ended with an error
  datagrams = 1024,         ///< queue pairs of types ud and rd
  local_invalidate = 2048,  ///< requests that invalidate an STag of this side's
  chosen_bases = 4096,      ///< regions whose tagged offsets begin elsewhere than at their address
  empty_regions = 8192,     ///< regions of 0 bytes
  told_invalidations = 16384,  ///< WorkCompletion::invalidated
  exact_errors = 32768,        ///< which local error a status tells, and whether a connection ended
                               ///< with an error
  send_queue_drain = 65536,    ///< QpState::sqd
  mpa_choices = 131072,  ///< CRCs, MPA's revision, peer_to_peer, and what query() tells of them
  long_private_data = 262144,   ///< more than 251 bytes
  overflow_events = 524288,     ///< AsyncEventType::cq_overflow
  solicited_events = 1048576,   ///< arm() for solicited completions gives no event for others, and
                                ///< WorkCompletion::solicited tells them apart
  read_rights = 2097152,        ///< peers read only memory with the right remote_read
  invalidate_rights = 4194304,  ///< peers invalidate only STags with the right remote_invalidate
  read_sinks = 8388608,         ///< Reads into memory without the right remote_write
  read_with_invalidate = 16777216,
  masked_atomics = 33554432,  ///< swap, and atomics with masks other than the usual ones
  window_bases = 67108864,    ///< windows whose tagged offsets begin elsewhere than at 0 and their
                              ///< address
  long_immediates = 134217728,  ///< immediate data of 64 bits over RC; without it of 32
  chosen_numbers = 268435456,   ///< QueuePairInit::number
  named_peers = 536870912,      ///< QueuePair::await_peer(), MeetingPoint
};
template <>
inline constexpr bool kIsFlags<Capability> = true;

/// One capability and its name, as messages and the tools print it.
struct CapabilityName {
  Capability capability;
  std::string_view name;
};
inline constexpr std::array kCapabilities = {
    CapabilityName{Capability::atomics, "atomics"},
    CapabilityName{Capability::immediate_data, "immediate data"},
    CapabilityName{Capability::memory_windows, "memory windows"},
    CapabilityName{Capability::fast_registration, "fast registration"},
    CapabilityName{Capability::shared_receive_queues, "shared receive queues"},
    CapabilityName{Capability::chosen_stags, "chosen STags"},
    CapabilityName{Capability::adopted_streams, "adopted streams"},
    CapabilityName{Capability::markers, "markers"},
    CapabilityName{Capability::held_messages, "held messages"},
    CapabilityName{Capability::terminate_codes, "Terminate codes"},
    CapabilityName{Capability::datagrams, "datagrams"},
    CapabilityName{Capability::local_invalidate, "local invalidate"},
    CapabilityName{Capability::chosen_bases, "chosen bases"},
    CapabilityName{Capability::empty_regions, "empty regions"},
    CapabilityName{Capability::told_invalidations, "told invalidations"},
    CapabilityName{Capability::exact_errors, "exact errors"},
    CapabilityName{Capability::send_queue_drain, "send queue drain"},
    CapabilityName{Capability::mpa_choices, "MPA choices"},
    CapabilityName{Capability::long_private_data, "long private data"},
    CapabilityName{Capability::overflow_events, "overflow events"},
    CapabilityName{Capability::solicited_events, "solicited events"},
    CapabilityName{Capability::read_rights, "read rights"},
    CapabilityName{Capability::invalidate_rights, "invalidate rights"},
    CapabilityName{Capability::read_sinks, "read sinks"},
    CapabilityName{Capability::read_with_invalidate, "Read with Invalidate"},
    CapabilityName{Capability::masked_atomics, "masked atomics"},
    CapabilityName{Capability::window_bases, "window bases"},
    CapabilityName{Capability::long_immediates, "long immediates"},
    CapabilityName{Capability::chosen_numbers, "chosen numbers"},
    CapabilityName{Capability::named_peers, "named peers"},
};
/// All of them.
inline constexpr Capability kAllCapabilities = [] {
  Capability all = Capability::none;
  for (const CapabilityName& one : kCapabilities) all = all | one.capability;
  return all;
}();

/// A limit of a device that is none: memory, descriptors and the system's own limits set it.
inline constexpr uint32_t kUnlimited = ~uint32_t{0};

/// The limits of a device, and its present state.
struct DeviceAttributes {
  Address address;
  uint64_t max_message = 0;      ///< bytes
  uint32_t max_queue_depth = 0;  ///< work requests per queue
  uint32_t max_sge = 0;          ///< per work request
  uint32_t max_inline_data = 0;  ///< bytes
  // Objects that there may be at once, or kUnlimited. Where there can be none: 0.
  uint32_t max_queue_pairs = 0;  ///< of type rc; those over datagrams take a port each
  uint32_t max_completion_queues = 0;
  uint32_t max_completion_entries = 0;  ///< of a completion queue
  uint32_t max_memory_regions = 0;      ///< with windows and fast registrations, in software
  uint32_t max_windows = 0;
  uint32_t max_shared_receive_queues = 0;
  uint32_t max_shared_receive_depth = 0;  ///< receives of such a queue
  uint32_t max_shared_receive_sge = 0;    ///< per receive there
  uint32_t max_groups = 0;                ///< that a UD queue pair may be in
  // Of a connection; more may be asked for where the device then has fewer.
  uint16_t max_ord = 0;
  uint16_t max_ird = 0;
  uint32_t queue_pairs = 0;      ///< open now
  uint32_t memory_regions = 0;   ///< registered now
  std::string crc_backend;       ///< the implementation of CRC32C
  std::string datagram_backend;  ///< how datagrams are moved
  std::string stream_backend;
  IoBackend io = IoBackend::automatic;  ///< the one in use, never `automatic`
  std::string io_name;                  ///< what messages call it
  std::string io_reason;                ///< why it is in use
  Capability capabilities = Capability::none;
};

/// Something of the system's that makes datagrams faster.
struct OffloadAttributes {
  bool available = false;
  std::string refusal = {};  ///< why not
};

/// Bytes of a socket's buffer.
struct SocketBufferAttributes {
  size_t asked = 0;  ///< 0: the system's default
  size_t granted = 0;
};

/// The means that the system gives to the sockets of UD and RD queue pairs.
struct DatagramSocketAttributes {
  OffloadAttributes segmentation;  ///< UDP_SEGMENT (GSO)
  OffloadAttributes coalescing;    ///< UDP_GRO
  OffloadAttributes busy_poll;     ///< whether this process may set SO_BUSY_POLL
  bool tells_overflow = false;     ///< SO_RXQ_OVFL: the counter rx_overflow works
  SocketBufferAttributes receive_buffer;
  SocketBufferAttributes send_buffer;
};

/// One of a device's counters.
struct CounterValue {
  std::string_view name;
  std::string_view meaning;
  uint64_t value = 0;
};

struct CompletionEvent {
  uint64_t context = 0;  ///< of the completion queue that has something
};

/// The content of a Terminate message (RFC 5040 section 4.8): which layer found which error.
struct TerminateCode {
  uint8_t layer = 0;  ///< 0 RDMAP, 1 DDP, 2 MPA
  uint8_t type = 0;
  uint8_t code = 0;
  friend bool operator==(const TerminateCode&, const TerminateCode&) = default;
};

/// The error in words, for example "remote protection error: base or bounds violation".
DIWARP_EXPORT std::string to_string(const TerminateCode& code);

/// The error that ended a connection. A responder that got no valid FPDU may not tell the peer.
struct TerminateInfo {
  TerminateCode code;
  bool received = false;  ///< in a Terminate of the peer; else found here
  /// Of the offending segment, as far as the message has them.
  std::vector<std::byte> headers = {};
};

enum class AsyncEventType : uint8_t {
  qp_fatal,           ///< the connection ended with an error; `terminate` may say which
  peer_closed,        ///< the peer ended the connection in order
  sq_drained,         ///< in sqd: all that was begun is done
  last_wqe_reached,   ///< a queue pair with a shared receive queue, in error: it will take no more
  srq_limit_reached,  ///< fewer receives are posted than the limit
  cq_overflow,        ///< a completion queue was full: completions wait at their queue pairs (none
                      ///< is lost) until it is polled
  port_active,        ///< a hardware device's port can be used again
  port_error,         ///< a hardware device's port has no link
  device_fatal,    ///< a hardware device has failed, or was removed: its queue pairs are in error
  accept_refused,  ///< a listener refuses connections, since the process or the system has no
                   ///< descriptor left; once, and each 10 s while that lasts
};
DIWARP_EXPORT std::string_view to_string(AsyncEventType type);

/// Something that no work request asked for.
struct AsyncEvent {
  AsyncEventType type = AsyncEventType::qp_fatal;
  uint32_t qp_number = 0;                       ///< of what happened to a queue pair
  uint64_t context = 0;                         ///< of the completion queue or shared receive queue
  std::optional<TerminateInfo> terminate = {};  ///< qp_fatal
  /// qp_fatal without a Terminate: timed_out where the peer answers no more, else connection_lost.
  std::error_code status = {};
  Address address = {};  ///< accept_refused: the listener's
};

/// The memory that a window or a fast registration names now.
struct SteeringTagAttributes {
  STag stag = 0;  ///< with the key it has now
  bool valid = false;
  uint64_t base = 0;    ///< tagged offset of the first byte
  uint64_t length = 0;  ///< bytes; 0 where it is not valid
  Access access = Access::none;
};

struct SharedReceiveQueueAttributes {
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
  uint32_t limit = 0;  ///< 0: disarmed, since it was reached or never set
  uint32_t posted = 0;
};

/// What an entry of an error queue tells of. All but the first inform of the network and the host,
/// and fail nothing. ICMP messages can be forged by anybody who can send this host a packet.
enum class DatagramErrorKind : uint8_t {
  protocol,          ///< a datagram that was refused: `code` says why
  port_unreachable,  ///< ICMP: nobody receives at the port of `peer`
  host_unreachable,  ///< ICMP: no way leads to `peer`
  path_prohibited,   ///< ICMP: a filter lets nothing through to `peer`
  mtu_black_hole,    ///< datagrams of `datagram_bytes` to `peer` vanish, smaller ones do not
  receive_overflow,  ///< the receive buffer had no room for `datagrams`
};

/// Something that went wrong on a queue pair over datagrams without a work request that could tell.
struct DatagramError {
  Address peer;  ///< where the offending datagram, or the report, came from; else as kind says
  bool reported = false;  ///< by the peer, about a datagram from here; else found here
  TerminateCode code;     ///< as a Terminate has them
  uint8_t opcode = 0;     ///< RDMAP opcode of the offending datagram
  uint32_t msn = 0;
  STag stag = 0;               ///< where it named memory
  uint64_t tagged_offset = 0;  ///< the same
  DatagramErrorKind kind = DatagramErrorKind::protocol;
  Address reporter = {};        ///< who sent the ICMP message
  uint32_t datagram_bytes = 0;  ///< UDP payload
  uint32_t smaller_bytes = 0;   ///< what datagrams to the peer have from then on; 0: no change
  uint64_t datagrams = 0;
};
/// A message about the case, with its cause and what to do.
DIWARP_EXPORT std::string to_string(const DatagramError& error);

/// A Write-Record that is not complete yet.
struct OpenRecord {
  Address source;
  uint32_t msn = 0;
  STag stag = 0;
  uint64_t tagged_offset = 0;
  ValidityMap validity;
};

/// A peer of an RD queue pair.
struct ReliablePeer {
  Address address;
  uint32_t incarnation = 0;
  Duration round_trip{0};          ///< smoothed; 0: not measured yet
  uint32_t congestion_window = 0;  ///< datagrams
  uint32_t in_flight = 0;          ///< datagrams
  uint64_t retransmitted = 0;      ///< datagrams
};

struct QueuePairAttributes {
  QpType type = QpType::rc;
  QpState state = QpState::reset;
  uint32_t number = 0;  ///< 24 bits
  QueuePairCapacity capacity;
  Address local_address;
  Address peer_address;   ///< RC, once connected
  uint32_t q_key = 0;     ///< UD
  uint64_t max_rate = 0;  ///< UD
  /// UD, RD: bytes of the longest Send without immediate data that travels in one datagram, to the
  /// destination that query() is given; without one, to hosts of the network that the device's
  /// address is in (a device on all addresses: of the one where multicasts leave). Follows from
  /// DatagramOptions::segment, `jumbo` and the path MTU, which may change. Immediate data take
  /// 8 bytes of it, the longer header of a Write-Record another 8. RC: 0.
  uint32_t max_datagram_payload = 0;
  uint32_t posted_sends = 0;
  uint32_t posted_receives = 0;
  StreamOptions stream;                    ///< RC
  std::optional<TerminateInfo> terminate;  ///< RC: how the last connection ended, where it was so
  // RC, of the connection:
  uint16_t ord = 0;  ///< Reads and atomics that may be outstanding at once
  uint16_t ird = 0;  ///< and those of the peer
  bool crc = false;
  bool send_markers = false;
  bool receive_markers = false;
  uint8_t mpa_revision = 0;
  Duration keep_alive{0};  ///< as for StreamOptions
  Duration user_timeout{0};
};

}  // namespace diwarp
