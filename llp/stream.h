// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/bytes.h"
#include "base/clock.h"
#include "diwarp/address.h"
#include "llp/peer_probe.h"
#include "llp/room_notice.h"

namespace diwarp {
class Counters;
}

namespace diwarp::llp {

class InputQueue;

/// Pieces of at most so many bytes are always copied.
inline constexpr size_t kCopiedPiece = 512;

enum class IoStatus : uint8_t {
  ok,           ///< `bytes` were moved, at least one
  would_block,  ///< nothing can be moved now
  closed,       ///< the peer ended the stream in order (receive only)
  failed,       ///< the stream is broken (reset, timed out); `error` is an errno
};

struct IoResult {
  IoStatus status = IoStatus::ok;
  size_t bytes = 0;
  int error = 0;
};

/// A reliable, ordered byte stream, as TCP is one. All calls are non-blocking and made by one
/// thread at a time (the engine that owns the stream). Destruction closes it: in order if all was
/// received and sent, else with a reset.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Gathers `pieces` in order; may take only a part.
  virtual IoResult send(std::span<const ConstBytes> pieces) = 0;

  // --- Zero copy: a stream that can reads memory of the sender's after the call instead of
  // copying it. Others copy, and send_zero_copy() is send().

  /// Has calls of send_zero_copy() not copy that have at least `from` bytes (not 0) in pieces
  /// longer than kCopiedPiece, and counts what comes of them. False: this stream always copies.
  virtual bool allow_zero_copy(size_t /*from*/, Counters& /*counters*/) { return false; }

  /// As send(), but pieces longer than kCopiedPiece may stay in flight: the stream reads their
  /// memory until zero_copy_released() has reached what zero_copy_calls() is after the call.
  /// abort() releases all memory, other ends do not.
  virtual IoResult send_zero_copy(std::span<const ConstBytes> pieces) { return send(pieces); }
  /// Calls without copying so far.
  virtual uint64_t zero_copy_calls() const { return 0; }
  /// How many of these, from the first on, have released all of their memory. The stream's
  /// descriptor polls as failed while there is news.
  virtual uint64_t zero_copy_released() { return 0; }
  /// Frees memory of the stream's own that was not needed since the last call. True if there may be
  /// some to free later.
  virtual bool trim() { return false; }

  virtual IoResult receive(Bytes buffer) = 0;

  /// The same into several buffers, one after the other, none of them empty. As it is here, for
  /// streams whose receive() tells how they ended each time it is called.
  virtual IoResult receive_into(std::span<const Bytes> buffers);

  /// All bytes that have arrived come with receive() from now on, though something else reads ahead
  /// of it (a ring): before the last calls on a stream that has failed. Waits until that has
  /// stopped.
  virtual void settle() {}

  /// Leaves the engine: nothing reads ahead of receive() any more, bytes read ahead are forgotten,
  /// and descriptor() polls readable and writable. False where the stream has no
  /// descriptor of which that can be said.
  virtual bool leave_engine() { return false; }

  /// Ends the sending direction in order (FIN) after everything sent so far.
  virtual void shutdown_send() = 0;

  /// The error that has broken the stream, an errno; 0: nothing, as far as this end knows. For the
  /// time after the peer's end, of which receive() tells nothing else. May tell it only once.
  virtual int error() { return 0; }

  /// Breaks the stream at once (RST).
  virtual void abort() = 0;

  /// The effective maximum segment size, in bytes (RFC 5044 section 4.4, EMSS).
  virtual size_t maximum_segment() const = 0;

  virtual Address local_address() const = 0;
  virtual Address peer_address() const = 0;

  /// A descriptor that polls writable like the stream, and, without an input_queue(), readable; -1
  /// where there is none.
  virtual int descriptor() const { return -1; }

  /// Gives the descriptor up, for another stream over it: later calls fail as after abort(). Only
  /// while no call without copying is in flight. -1: this stream gives none.
  virtual int release() { return -1; }

  /// Whether the peer still answers; null where the stream cannot tell.
  virtual PeerProbe* peer_probe() { return nullptr; }

  /// Lets a receive that finds nothing look into the network device's queue itself before it gives
  /// up, for `time`. Zero leaves the system's choice. False where the system refuses.
  virtual bool set_busy_poll(Duration /*time*/) { return true; }

  /// As for DatagramLink: where the stream announces that it may be read.
  virtual InputQueue* input_queue() const { return nullptr; }
  virtual void set_key(void* /*key*/) {}

  // --- Streams whose bytes may go another way than by the descriptor (rings in shared memory).

  /// Whether an FPDU whose first byte is sent now has to bear its CRC, where the connection has
  /// CRCs. If not, its bytes stay in the host's memory, and the peer's stream tells so.
  virtual bool send_needs_crc() const { return true; }
  /// The same of FPDUs whose first byte came with the last receive.
  virtual bool received_needs_crc() const { return true; }

  /// Bytes that are sent stay on the wire from now on: what follows counts them (markers).
  virtual void stay_on_wire() {}
  /// As for DatagramLink: whether the stream's descriptor and queue tell of all input from now on.
  virtual bool set_watched(bool /*watched*/) { return true; }
  /// After a send that took less than all: how the stream tells that there is room.
  virtual RoomNotice room_notice() const { return RoomNotice::descriptor; }

  /// For streams without a descriptor: called, from any thread, when the stream may be read or
  /// written again.
  virtual void on_ready(std::function<void()> /*callback*/) {}
};

}  // namespace diwarp::llp
