// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/export.h"
#include "diwarp/types.h"

/// What the objects of the verbs are made with, and what they tell about themselves.
namespace diwarp {

class CompletionQueue;
class SharedReceiveQueue;
namespace rnic {
class CompletionQueue;
class SharedReceiveQueue;
}

/// Who runs the RNIC's engine (docs/threading.md).
enum class Progress : uint8_t {
  thread,  ///< an RNIC thread, which steps aside while an application thread polls
  manual,  ///< the application alone: polling a completion queue and Device::progress()
};

/// What moves bytes between the engine and the kernel's sockets.
enum class IoBackend : uint8_t {
  automatic,  ///< what measured best (docs/performance.md)
  syscall,    ///< system calls
  uring,      ///< io_uring; system calls, and a line in the log, where it cannot be had
};

struct DeviceOptions {
  Progress progress = Progress::thread;
  /// How long the RNIC thread looks for more work before it sleeps. Longer saves wake-ups (about
  /// 10 us each) and costs processor time.
  Duration spin = std::chrono::microseconds(50);
  /// How soon the RNIC thread takes the engine over after the application, which polled, has
  /// stopped. While it polls without a pause this doubles each time, up to `takeover_limit`: the
  /// longer, the less it is disturbed.
  Duration takeover = std::chrono::microseconds(100);
  Duration takeover_limit = std::chrono::milliseconds(2);
  /// Processor the RNIC thread is bound to; -1: the scheduler's choice.
  int cpu = -1;
  /// Socket buffers of UD queue pairs, in bytes. Where the process may not exceed the system's
  /// limits (net.core.rmem_max, wmem_max), they are cut to these.
  size_t udp_receive_buffer = size_t{8} << 20;
  size_t udp_send_buffer = size_t{4} << 20;
  /// Let the kernel split and join trains of datagrams (UDP_SEGMENT, UDP_GRO) where it can.
  bool offload = true;
  /// Above zero: a receive that finds nothing looks once into the network device's queue itself
  /// (SO_BUSY_POLL), for datagrams and streams; zero: what the system has (net.core.busy_read). It
  /// saves the interrupt where the device's driver supports it, and only costs where not (loopback,
  /// veth). More than the system's own value needs CAP_NET_ADMIN; where that is refused the
  /// system's stays, and busy_poll_refused counts.
  Duration busy_poll = Duration::zero();
  /// RC: Sends and Writes leave without being copied (MSG_ZEROCOPY) where a call to the kernel has
  /// so many bytes of payload, in pieces longer than 512 bytes; 0: never. Worth it only on a
  /// network device, from about 10 KB on; on loopback and veth the kernel copies all the same, and
  /// it costs. Completions then come when the peer's TCP has acknowledged the bytes (docs/rc.md).
  /// Not with io_uring.
  size_t zerocopy_from = 0;
  IoBackend io = IoBackend::automatic;
};

/// What a device is and can do.
struct DeviceAttributes {
  Address address;
  uint64_t max_message = 0;      ///< bytes
  uint32_t max_queue_depth = 0;  ///< work requests per queue
  uint32_t max_sge = 0;          ///< per work request
  uint32_t max_inline_data = 0;  ///< bytes
  uint32_t queue_pairs = 0;      ///< open now
  uint32_t memory_regions = 0;   ///< registered now
  std::string crc_backend;       ///< what computes CRC32C
  std::string datagram_backend;  ///< how datagrams are moved
  std::string stream_backend;
  IoBackend io = IoBackend::syscall;  ///< what the device uses: syscall or uring
  std::string io_reason;              ///< and why
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

/// What the system gives to the sockets of UD and RD queue pairs.
struct DatagramSocketAttributes {
  OffloadAttributes segmentation;  ///< UDP_SEGMENT (GSO)
  OffloadAttributes coalescing;    ///< UDP_GRO
  OffloadAttributes busy_poll;     ///< whether this process may set SO_BUSY_POLL
  bool tells_overflow = false;     ///< SO_RXQ_OVFL: the counter rx_overflow works
  SocketBufferAttributes receive_buffer;
  SocketBufferAttributes send_buffer;
};

struct CompletionEvent {
  uint64_t context = 0;  ///< of the completion queue that has something
};

/// What a Terminate message says (RFC 5040 section 4.8): which layer found which error.
struct TerminateCode {
  uint8_t layer = 0;  ///< 0 RDMAP, 1 DDP, 2 MPA
  uint8_t type = 0;
  uint8_t code = 0;
  friend bool operator==(const TerminateCode&, const TerminateCode&) = default;
};

/// The error in words, for example "remote protection error: base or bounds violation".
DIWARP_EXPORT std::string to_string(const TerminateCode& code);

/// The error that ended a connection. A responder to whom no valid FPDU came may not tell the peer.
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
  accept_refused,     ///< a listener refuses connections, since the process or the system has no
                      ///< descriptor left; once, and each 10 s while that lasts
};
DIWARP_EXPORT std::string_view to_string(AsyncEventType type);

/// Something that no work request asked for.
struct AsyncEvent {
  AsyncEventType type = AsyncEventType::qp_fatal;
  uint32_t qp_number = 0;                   ///< of what happened to a queue pair
  uint64_t context = 0;                     ///< of the completion queue or shared receive queue
  std::optional<TerminateInfo> terminate = {};  ///< qp_fatal
  /// qp_fatal without a Terminate: timed_out where the peer answers no more, else connection_lost.
  std::error_code status = {};
  Address address = {};  ///< accept_refused: the listener's
};

/// Names a shared receive queue in QueuePairInit; made from a SharedReceiveQueue.
class SharedReceiveQueueRef {
 public:
  SharedReceiveQueueRef() = default;
  SharedReceiveQueueRef(const SharedReceiveQueue& srq);  // NOLINT: meant to convert
  explicit SharedReceiveQueueRef(std::shared_ptr<rnic::SharedReceiveQueue> impl)
      : impl_(std::move(impl)) {}
  const std::shared_ptr<rnic::SharedReceiveQueue>& impl() const { return impl_; }

 private:
  std::shared_ptr<rnic::SharedReceiveQueue> impl_;
};

struct SharedReceiveQueueOptions {
  uint32_t max_wr = 256;  ///< rounded up to a power of two
  uint32_t max_sge = 4;
  uint32_t limit = 0;     ///< when fewer are posted, one srq_limit_reached event; 0: none
  uint64_t context = 0;   ///< comes back in its events
};

/// What a window or a fast registration names now.
struct SteeringTagAttributes {
  STag stag = 0;       ///< with the key it has now
  bool valid = false;
  uint64_t base = 0;   ///< tagged offset of the first byte
  uint64_t length = 0; ///< bytes; 0 where it is not valid
  Access access = Access::none;
};

struct SharedReceiveQueueAttributes {
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
  uint32_t limit = 0;   ///< 0: disarmed, since it was reached or never set
  uint32_t posted = 0;
};

/// Names a completion queue in QueuePairInit; made from a CompletionQueue.
class CompletionQueueRef {
 public:
  CompletionQueueRef() = default;
  CompletionQueueRef(const CompletionQueue& cq);  // NOLINT: meant to convert
  explicit CompletionQueueRef(std::shared_ptr<rnic::CompletionQueue> impl)
      : impl_(std::move(impl)) {}
  const std::shared_ptr<rnic::CompletionQueue>& impl() const { return impl_; }

 private:
  std::shared_ptr<rnic::CompletionQueue> impl_;
};

/// How large a queue pair is. Queue depths are rounded up to a power of two.
struct QueuePairCapacity {
  uint32_t max_send_wr = 128;
  uint32_t max_recv_wr = 128;
  uint32_t max_send_sge = 4;
  uint32_t max_recv_sge = 4;
  uint32_t max_inline_data = 64;  ///< bytes
};

/// When the target of a Write-Record is told of it.
enum class RecordCompletion : uint8_t {
  complete,      ///< when all its bytes are valid, or nothing new came for `record_timeout`
  last_segment,  ///< when the segment that ends it came (or as above, if that never comes)
  per_segment,   ///< of each segment, as it comes: `byte_count` is the segment's, `tagged_offset`
                 ///< where it lies; no map of the whole message is kept, so over UD duplicates
                 ///< show twice; over RD each byte is reported once
};

/// Whom a queue pair listens to: addresses that agree with `network` in the first `prefix_length`
/// bits, with source ports from `first_port` to `last_port`.
struct SourceFilter {
  Address network;  ///< its port does not matter
  uint8_t prefix_length = 0;
  uint16_t first_port = 0;
  uint16_t last_port = 65535;
};

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
  /// Reads that may be under way at once, 1 to 1,024; those behind wait.
  uint32_t max_outstanding = 16;
  /// Requests of one Read that may be under way at once, 1 to 256, of at most 256 KiB each.
  uint32_t window = 2;
  /// Requests of others that may wait for their responses, in all (up to 65,536) and from one
  /// source.
  uint32_t max_responses = 256;
  uint32_t max_responses_per_source = 32;
};

/// What queue pairs over datagrams have: UD, and RD where it does not say UD.
struct DatagramOptions {
  /// UDP port, which is also the queue pair's number; 0: a free one.
  uint16_t port = 0;
  /// UD: other queue pairs of this user with this option, of any process, may have the same address
  /// and port, and so the same number. What is sent to a group comes to each of them that joined it;
  /// what is sent to the address itself, answers included, comes to one of them, of the system's
  /// choice. For members that only receive. `connect_after` counts as 0.
  bool share_port = false;
  /// A bound UDP descriptor to use instead of opening one; the queue pair owns it afterwards.
  int descriptor = -1;
  /// Sends with another Q_Key are dropped.
  uint32_t q_key = 0;
  /// Largest UDP payload to send, headers and CRC included; 0: what the path MTU carries, or with
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
  /// offset, no right to it) within a second, from one source and from all together. UD: what comes
  /// from a source that had more is dropped unseen for the rest of the second. While all together
  /// had more, so is what comes from sources that missed within the last `source_timeout`, or have
  /// neither shown that they are at their address nor finished a message yet. RD: what would be
  /// dropped waits, and while all together had more, only addresses that named memory rightly, and
  /// did not miss within `source_timeout`, do not wait. Few enough that guessing takes long
  /// (docs/datagrams.md has the odds), and more than mistakes make.
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
  /// Whom to listen to; empty: everyone.
  std::vector<SourceFilter> sources = {};
  GroupOptions group = {};
};

/// What an error at one peer of an RD queue pair does.
enum class ErrorScope : uint8_t {
  peer,        ///< fails that peer's work only
  queue_pair,  ///< moves the queue pair to the error state
};

/// In which order an RD queue pair reports what was sent (docs/datagrams.md).
enum class CompletionOrder : uint8_t {
  posting,  ///< that of posting, whatever the peers: a slow one holds up the completions of all
  peer,     ///< that of posting among the requests to one peer: a slow one holds up its own
};

/// What only RD queue pairs have.
struct ReliableOptions {
  /// A peer that answers nothing for so long while something is awaited of it is given up.
  Duration peer_timeout = std::chrono::seconds(10);
  /// How often a silent peer of which something is awaited is asked for a sign of life.
  Duration keep_alive = std::chrono::seconds(1);
  /// A peer with which nothing was exchanged for so long is forgotten.
  Duration idle_timeout = std::chrono::seconds(60);
  /// Peers at once, in all and at one address with whatever port; more strangers are not answered,
  /// and sends to more fail with retry_exceeded. The share of an address is so large that a host's
  /// queue pairs find room, and so small that one host cannot fill the table. At least 1 each.
  uint32_t max_peers = 16384;
  uint32_t max_peers_per_address = 4096;
  /// A Send of several segments of which nothing new arrives for so long fails at both ends, and
  /// its receive is used again; 0: as long as peer_timeout. Sends that are not whole hold at most
  /// half of the posted receives in all, and half of these from one address; the next one waits.
  /// After the same time without a delivery, what came early and waits for a datagram that is
  /// missing is dropped, and the peer begins anew.
  Duration message_timeout = Duration::zero();
  /// Datagrams that a peer may have on the way to this queue pair: by default as many as an
  /// acknowledgement can tell of one by one.
  uint32_t receive_window = 1024;
  /// Memory for datagrams that came out of order or found no receive, and for the lists of them, of
  /// all peers, in bytes.
  size_t max_buffer = size_t{64} << 20;
  /// Memory of all peers, in bytes, for what was sent and is not acknowledged, beyond 16 datagrams to
  /// each; 40 bytes for each datagram. While it is used up, no more than these 16 are on the way.
  size_t max_sent_memory = size_t{64} << 20;
  ErrorScope error_scope = ErrorScope::peer;
  CompletionOrder completion_order = CompletionOrder::posting;
};

/// Something that went wrong on a queue pair over datagrams without a work request that could tell.
struct DatagramError {
  Address peer;            ///< where the offending datagram came from, or who reports
  bool reported = false;   ///< by the peer, about a datagram from here; else found here
  TerminateCode code;      ///< as a Terminate has them
  uint8_t opcode = 0;      ///< RDMAP opcode of the offending datagram
  uint32_t msn = 0;
  STag stag = 0;               ///< where it named memory
  uint64_t tagged_offset = 0;  ///< the same
};

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
  Duration round_trip{0};       ///< smoothed; 0: not measured yet
  uint32_t congestion_window = 0;  ///< datagrams
  uint32_t in_flight = 0;          ///< datagrams
  uint64_t retransmitted = 0;      ///< datagrams
};

/// What happens to a message that finds no posted receive (RC).
enum class ReceiveNotReady : uint8_t {
  hold,       ///< nothing more is read from the connection until a receive is posted; if that takes
              ///< longer than `receive_wait`, the connection is terminated
  terminate,  ///< the connection is terminated at once, as RFC 5040 has it
};

/// What only RC queue pairs have.
struct StreamOptions {
  ReceiveNotReady receive_not_ready = ReceiveNotReady::hold;
  /// Also for a peer that has ended its side to take all.
  Duration receive_wait = std::chrono::seconds(60);
  /// Largest FPDU to send, in bytes, 128 to 65,536; 0: what one TCP segment carries. Larger ones
  /// cost less per byte and may be cut by TCP.
  uint32_t max_fpdu = 0;
  /// A connection on which nothing is outstanding ends when nothing came from the peer's TCP for so
  /// long, though it was probed (RFC 9293 section 3.8.4): 5 s to 18 h; zero: it is never probed. In
  /// whole seconds, and never later. An application that does not read ends nothing.
  Duration keep_alive = std::chrono::seconds(60);
  /// A connection with bytes that the peer's TCP has not acknowledged, or with a Read or an atomic
  /// that it has not answered, ends when nothing came from the peer's TCP for so long, and at least
  /// three retransmissions or probes got no answer (RFC 9293 section 3.8.3): 5 s to 18 h; zero:
  /// only as the system has it (net.ipv4.tcp_retries2). A peer's closed window ends nothing.
  Duration user_timeout = std::chrono::seconds(20);
};

struct QueuePairInit {
  QpType type = QpType::rc;
  CompletionQueueRef send_cq;
  CompletionQueueRef recv_cq;
  QueuePairCapacity capacity = {};
  DatagramOptions datagram = {};
  /// Every send gets a completion, whatever its flags.
  bool signal_all = false;
  /// RC: takes receives from here instead of from a queue of its own.
  SharedReceiveQueueRef srq = {};
  StreamOptions stream = {};
  ReliableOptions reliable = {};
};

struct QueuePairAttributes {
  QpType type = QpType::rc;
  QpState state = QpState::reset;
  uint32_t number = 0;  ///< 24 bits
  QueuePairCapacity capacity;
  Address local_address;
  Address peer_address;      ///< RC, once connected
  uint32_t q_key = 0;        ///< UD
  uint64_t max_rate = 0;     ///< UD
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
  Duration keep_alive{0};    ///< as for StreamOptions
  Duration user_timeout{0};
};

/// What makes the responder of a connection ready to send (RFC 6581 section 4): a first message of
/// the initiator, of no length, that no application sees.
enum class ReadyToReceive : uint8_t { none, send, write, read };

/// A connection over an established TCP connection whose MPA start-up somebody else has done.
struct StreamAttributes {
  int descriptor = -1;    ///< of the TCP connection; the queue pair owns it afterwards
  bool initiator = true;  ///< of MPA; only the initiator may send first
  bool crc = true;
  bool send_markers = false;
  bool receive_markers = false;
  uint16_t ord = 16;
  uint16_t ird = 16;
  ReadyToReceive ready = ReadyToReceive::none;
  /// As for ConnectOptions.
  std::optional<Duration> keep_alive = {};
  std::optional<Duration> user_timeout = {};
};

/// The private data of a connection request or reply: a copy of bytes.
class PrivateData {
 public:
  PrivateData() = default;
  template <std::convertible_to<std::span<const std::byte>> Bytes>
  PrivateData(const Bytes& bytes) : PrivateData(std::span<const std::byte>(bytes)) {}  // NOLINT
  PrivateData(std::span<const std::byte> bytes)  // NOLINT: meant to convert
      : bytes_(bytes.begin(), bytes.end()) {}
  const std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  auto begin() const { return bytes_.begin(); }
  auto end() const { return bytes_.end(); }

 private:
  std::vector<std::byte> bytes_;
};

struct ConnectOptions {
  /// Up to 508 bytes (512 with revision 1) that the listener sees in its ConnectionRequest (RFC
  /// 5044 section 7.1, RFC 6581 section 9).
  PrivateData private_data = {};
  /// How long resolving, TCP's handshake and the MPA reply may take together.
  Duration timeout = std::chrono::seconds(10);
  /// Ask for CRCs. They are used if either side asks.
  bool crc = true;
  /// MPA's revision, 1 or 2 (RFC 6581). A responder answers in the initiator's.
  uint8_t revision = 2;
  /// Revision 2: the responder is made ready to send with a message of no length that no
  /// application sees, so that either application may send first.
  bool peer_to_peer = true;
  /// Revision 2: ask once more in revision 1, within the timeout, where the peer answers in that or
  /// closes the connection without an answer. The connection is then not peer-to-peer.
  bool fallback = true;
  /// Ask the peer to send markers (RFC 5044 section 4.3).
  bool markers = false;
  /// Reads and atomics that this side wants outstanding, and those of the peer that it answers at a
  /// time: 0 to 16,382. The connection has what both sides can do; revision 1 does not negotiate.
  uint16_t ord = 16;
  uint16_t ird = 16;
  /// Of this connection, instead of those of the queue pair's StreamOptions.
  std::optional<Duration> keep_alive = {};
  std::optional<Duration> user_timeout = {};
};

struct DisconnectOptions {
  /// How long what was posted may take to go out, and the peer to close its side.
  Duration timeout = std::chrono::seconds(5);
};

/// What a peer that asks for a connection has for this side, and wants from it.
struct RequestedDepths {
  uint16_t ord = 16382;  ///< Reads and atomics that it answers at a time; 16,382: it did not say
  uint16_t ird = 16382;  ///< Reads and atomics that it wants outstanding; 16,382: it did not say
};

struct AcceptOptions {
  /// Up to 508 bytes (512 where the peer speaks revision 1) that connect() returns at the peer.
  PrivateData private_data = {};
  /// Use CRCs even if the peer does not ask for them.
  bool crc = true;
  /// As for ConnectOptions.
  bool markers = false;
  uint16_t ord = 16;
  uint16_t ird = 16;
  std::optional<Duration> keep_alive = {};
  std::optional<Duration> user_timeout = {};
};

struct ListenOptions {
  int backlog = 128;
  /// Connections whose MPA request has not come whole yet, in all and from one address: 1 to 4,096.
  /// When one more comes, the oldest of them is closed, of that address if its share is used up.
  uint32_t max_startups = 256;
  uint32_t max_startups_per_address = 64;
  /// A peer that has not sent its whole MPA request by then is dropped (RFC 5044 section 7.1).
  Duration request_timeout = std::chrono::seconds(5);
  /// Requests that may wait for get_request(), or as events; more are rejected.
  size_t max_requests = 1024;
};

}  // namespace diwarp
