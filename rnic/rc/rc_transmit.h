// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "ddp/header.h"
#include "ddp/protection_context.h"
#include "ddp/segmentation.h"
#include "llp/stream.h"
#include "mpa/fpdu.h"
#include "mpa/negotiated_parameters.h"
#include "rdmap/stream_receiver.h"
#include "rnic/engine/transmit_source.h"
#include "rnic/queues/work_queue.h"
#include "rnic/rc/rc_requester.h"
#include "rnic/rc/rc_responder.h"
#include "rnic/rc/scratch.h"
#include "rnic/rc/zero_copy_tracker.h"

namespace diwarp::rnic {

// Tunables of RC transmission.

/// FPDUs that one system call carries at most: with Ethernet's segments about 46 KB.
inline constexpr size_t kBurstFpdus = 32;
/// No more is framed once so many bytes wait, where other queue pairs of the engine have something
/// to do: a burst is what they wait for.
inline constexpr size_t kBurstBytes = size_t{64} << 10;
/// The same where none has. What a system call costs besides copying is much on loopback: while one
/// lasts, TCP leaves acknowledgements to its end and reuses the memory that they free, still in the
/// cache; between two, the receiver's processor takes them and that memory. Measured there with 1
/// MiB messages, against a plain stream: 0.46 with 64 KiB, 0.63 with 512 KiB, 0.79 with this.
inline constexpr size_t kLoneBurstBytes = size_t{1} << 20;
/// The same of Read responses with CRCs, which are copied first: what the copy of a longer burst
/// pushes out of the cache costs more than fewer system calls save. Measured as above, of RDMA
/// Writes: 0.67 with 128 KiB, 0.74 with 256 KiB, 0.85 with this, 0.83 with 1 MiB.
inline constexpr size_t kStagedBurstBytes = size_t{512} << 10;
/// How old the stream's segment size may become. It moves with the path MTU and with the peer's
/// window, and asking costs a system call.
inline constexpr Duration kSegmentRefresh = std::chrono::milliseconds(100);

/// What a ready-to-receive message names: nothing looks at it.
inline constexpr STag kReadyStag = 1;

/// The sending half of an RC queue pair: cuts messages into FPDUs and gives these to the stream, a
/// burst at a time. Messages are the send queue's and the answers to the peer's requests; they take
/// turns, and one is finished before the next begins. Payload stays where the application has it
/// until the stream takes it, or, where that sends without copying, until it has released it.
class RcTransmit {
 public:
  /// What a burst needs from the queue pair.
  struct Context {
    SendQueue& sends;
    RcRequester& requester;
    RcResponder& responder;
    llp::Stream& stream;
    Counters& counters;
    const ddp::ProtectionContext& protection;
    bool serves_sends;   ///< the state lets the send queue begin messages
    size_t burst_bytes;  ///< kBurstBytes or kLoneBurstBytes
    bool zero_copy;      ///< the stream need not copy what Sends and Writes carry
  };

  enum class Fault : uint8_t {
    none,
    stream_failed,
    bad_send,      ///< the oldest send failed: it may not be read, or not be done
    bad_response,  ///< memory that the peer reads may not be read any more
  };

  struct Result {
    size_t fpdus = 0;  ///< that the stream took to the end
    Pending pending = Pending::nothing;
    Fault fault = Fault::none;
    WcStatus status = WcStatus::success;  ///< bad_send: why
    int error = 0;                        ///< stream_failed: an errno
  };

  /// For a new stream. Only the initiator of a connection may send at once.
  void start(const mpa::NegotiatedParameters& parameters, bool initiator, uint32_t max_fpdu);
  /// The stream is gone: nothing is kept of what was to be sent on it.
  void forget();
  /// The initiator's first FPDU came: the responder may send (RFC 5044 section 7.1.2).
  void allow() { allowed_ = true; }
  bool allowed() const { return allowed_; }

  /// Sends one burst.
  Result run(Context context, Time now);

  /// The stream reads memory of requests that it has taken.
  bool zero_copy_in_flight() const { return zero_copy_.in_flight(); }
  /// Completes the requests whose memory it has released. True if there was some.
  bool complete_released(llp::Stream& stream, SendQueue& sends) {
    return zero_copy_.complete_released(stream, sends);
  }

  /// Nothing of an unfinished message is on the stream, so that it may be ended in order here.
  bool at_boundary() const;
  /// Nothing is framed that is not on the stream.
  bool drained() const { return count_ == 0; }
  bool keeps_memory() const {
    return rings_ != nullptr || staging_.size() != 0 || marked_.size() != 0;
  }
  /// Frees memory that was not used since the last call. True if there may be some to free later.
  bool trim();

  /// What has to go out when the stream is ended with this Terminate (a ULPDU): the rest of an FPDU
  /// that was begun, and the Terminate. Empty where the rest may not be read any more.
  std::vector<std::byte> final_bytes(Context context, ConstBytes terminate) const;

 private:
  enum class Origin : uint8_t { send_queue, response, ready };

  /// A message of which something is framed and not yet on the stream, or still to be framed.
  struct Message {
    Origin origin = Origin::send_queue;
    rdmap::StreamSegment header = {};  // of its first segment
    // Its payload: memory,
    std::span<const Sge> sges = {};
    uint64_t length = 0;               // bytes
    const SendEntry* entry = nullptr;  // whose SGEs they are
    rdmap::ReadRequest read = {};      // or what they answer,
    Sge source = {};                   // from here
    // or bytes of its own.
    uint8_t body_bytes = 0;
    std::array<std::byte, rdmap::kAtomicRequestBytes> body = {};
  };

  static constexpr size_t kMaxHead =
      mpa::kLengthBytes + ddp::kUntaggedHeaderBytes + rdmap::kAtomicRequestBytes;
  static_assert(kMaxHead <= llp::kCopiedPiece, "the rings' memory is used again at once");

  /// An FPDU that is framed and not yet wholly on the stream. Its payload is found anew in the
  /// message's SGEs each time.
  struct Fpdu {
    std::array<std::byte, kMaxHead> head;  // length, DDP header, a body of the message's own
    std::array<std::byte, mpa::kMaxTrailer> trailer;
    uint8_t head_bytes = 0;
    uint8_t trailer_bytes = 0;
    ddp::Segment segment = {};          // where its payload lies in its message
    uint32_t whole = 0;                 // bytes on the stream, markers included
    const std::byte* staged = nullptr;  // the payload, where it was copied

    ConstBytes head_view() const { return ConstBytes(head).first(head_bytes); }
  };

  /// What is framed, and the messages of that. There only while something is sent, and until trim()
  /// finds that nothing was for a while: most queue pairs are idle.
  struct Rings {
    std::array<Fpdu, kBurstFpdus> fpdus;
    std::array<Message, kBurstFpdus> messages;
  };

  class Burst;

  /// What the try to begin a message led to.
  enum class Begun : uint8_t {
    message,
    nothing,  ///< there is none, or a response must come first
    later,    ///< what is framed must be on the stream first
    failed,
  };

  /// What the try to frame an FPDU led to.
  enum class Framed : uint8_t {
    fpdu,
    no_room,    ///< in the burst, until it is on the stream
    no_memory,  ///< now, and that is counted
  };

  bool has_work(const Context& context) const;
  bool take_rings();
  static Result refusal(Origin origin);
  void refresh_segment(const llp::Stream& stream, Time now);
  bool gather(Burst& burst) const;
  bool frame(Burst& burst, Result& result);
  Framed frame_next(Burst& burst);
  llp::IoResult give(Context& context, const Burst& burst);
  bool may_zero_copy() const;
  bool take(Context& context, Scratch& copies, size_t bytes);
  Framed stage(Fpdu& fpdu, const Message& message, Context& context);
  void encode_head(Fpdu& fpdu, const Message& message) const;
  void encode_trailer(Fpdu& fpdu, std::span<const ConstBytes> payload) const;
  void encode_marked(Fpdu& fpdu, std::span<const ConstBytes> payload);
  size_t advance(Context& context, size_t bytes);
  void finish_message(Context& context);
  void append_fpdu(std::vector<std::byte>& words, ConstBytes ulpdu, uint64_t position) const;

  Message& add_message(Origin origin);
  void add_ready_message(ReadyToReceive kind);
  void set_header(Message& message, rdmap::Opcode opcode);
  Begun begin_message(Context& context, Result& result);
  Begun begin_response(Context& context, Result& result);
  bool describe_response(const rdmap::ReadRequest& request, const RcResponder& responder);
  bool describe_response(const rdmap::AtomicRequest& request, const RcResponder& responder);
  Begun begin_send(Context& context, Result& result);
  std::optional<WcStatus> why_not(const Context& context, const SendEntry& entry) const;
  static Begun fail(Result& result, Fault fault, WcStatus status);
  void describe(const SendEntry& entry, Context& context);
  size_t encode_request(const SendEntry& entry, Context& context, Bytes out);

  Fpdu& framed(size_t index) { return rings_->fpdus[(first_ + index) % kBurstFpdus]; }
  const Fpdu& framed(size_t index) const { return rings_->fpdus[(first_ + index) % kBurstFpdus]; }
  Message& message(size_t index) {
    return rings_->messages[(first_message_ + index) % kBurstFpdus];
  }
  const Message& message(size_t index) const {
    return rings_->messages[(first_message_ + index) % kBurstFpdus];
  }
  ConstBytes marked() const { return ConstBytes(marked_.bytes()).first(framed(0).whole); }
  Message& last_message() { return message(message_count_ - 1); }

  bool allowed_ = false;
  bool crc_ = true;
  bool send_markers_ = false;
  uint32_t max_fpdu_ = 0;  // 0: what a TCP segment carries
  size_t mulpdu_ = 0;
  Time measured_{};

  ReadyToReceive ready_ = ReadyToReceive::none;  // the first message is to be this

  std::unique_ptr<Rings> rings_;
  bool rings_used_ = false;  // since the last trim()

  // Framed, in order. With markers it is one FPDU at a time, whose bytes are in marked_.
  size_t first_ = 0;
  size_t count_ = 0;
  size_t waiting_bytes_ = 0;  // of all of them
  size_t sent_ = 0;           // bytes of the first one that the stream has
  Scratch marked_;
  // Copies of what peers read, from the first FPDU that is framed to the last: a peer may read what
  // changes meanwhile, and the bytes that are sent have to be those of the CRC.
  Scratch staging_;
  size_t staged_ = 0;         // bytes of it in use
  bool copies_used_ = false;  // either of them, since the last trim()
  uint64_t position_ = 0;     // bytes of FPDUs framed so far

  ZeroCopyTracker zero_copy_;

  // Their messages, in order. The last one may have more to frame.
  size_t first_message_ = 0;
  size_t message_count_ = 0;
  bool framing_ = false;      // the last one has
  uint64_t next_offset_ = 0;  // from here on
  uint64_t next_entry_ = 0;   // place in the send queue of what comes after
  bool responded_last_ = false;
  std::array<uint32_t, rdmap::kQueues> next_msn_{1, 1, 1, 1};
};

}  // namespace diwarp::rnic
