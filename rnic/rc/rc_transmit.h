// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "diwarp/stream_options.h"
#include "mpa/negotiated_parameters.h"
#include "rnic/engine/transmit_source.h"
#include "rnic/rc/burst_ring.h"
#include "rnic/rc/fpdu_encoder.h"
#include "rnic/rc/rc_fpdu_queue.h"
#include "rnic/rc/rc_messages.h"
#include "rnic/rc/rc_transmit_context.h"
#include "rnic/rc/transmit_copies.h"
#include "rnic/rc/zero_copy_tracker.h"

namespace diwarp::rnic {

// Tunables of RC transmission.

/// No more is framed once so many bytes wait, where other queue pairs of the engine have something
/// to do: a burst is what they wait for.
inline constexpr size_t kBurstBytes = size_t{64} << 10;
/// The same where none has. A system call costs much besides copying on loopback: while one
/// lasts, TCP leaves acknowledgements to its end and reuses the memory that they free, still in the
/// cache; between two, the receiver's processor takes them and that memory. Measured there with 1
/// MiB messages, against a plain stream: 0.46 with 64 KiB, 0.63 with 512 KiB, 0.79 with this.
inline constexpr size_t kLoneBurstBytes = size_t{1} << 20;
class RcBurst;

/// The sending half of an RC queue pair: gives FPDUs to the stream, a burst at a time. RcMessages
/// has the messages, FpduEncoder cuts and encodes them, RcFpduQueue keeps what is framed. Payload
/// stays where the application has it (but for TransmitCopies) until the stream takes it, or, where
/// that sends without copying, until it has released it.
class RcTransmit {
 public:
  using Context = RcTransmitContext;

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
  void start(const mpa::NegotiatedParameters& parameters, bool initiator,
             const StreamOptions& options);
  /// The stream is gone: nothing is kept of what was to be sent on it.
  void forget();

  /// Sends one burst.
  Result run(const Context& context, Time now);

  RcMessages& messages() { return messages_; }
  const RcMessages& messages() const { return messages_; }
  /// The requests whose memory the stream reads.
  ZeroCopyTracker& zero_copy() { return zero_copy_; }
  const ZeroCopyTracker& zero_copy() const { return zero_copy_; }

  /// Nothing of an unfinished message is on the stream, so that it may be ended in order here.
  bool at_boundary() const;
  /// Nothing is framed that is not on the stream.
  bool drained() const { return fpdus_.empty(); }
  bool keeps_memory() const { return few_ || many_ || copies_.keeps_memory(); }
  /// Frees memory that was not used since the last call. True if there may be some to free later.
  bool trim();

  /// The bytes that have to go out when the stream is ended with this Terminate (a ULPDU): the rest
  /// of an FPDU that was begun, and the Terminate. Empty where the rest may not be read any more.
  std::vector<std::byte> final_bytes(const Context& context, ConstBytes terminate) const;

 private:
  /// What is framed, and the messages of that. There only while something is sent, and until trim()
  /// finds that nothing was for a while: most queue pairs are idle, and most others send one
  /// message at a time.
  template <size_t kEntries>
  struct Rings {
    std::array<RcFpdu, kEntries> fpdus;
    std::array<RcMessage, kEntries> messages;
  };
  static constexpr size_t kFewFpdus = 4;

  bool take_rings();
  template <size_t kEntries>
  bool use(std::unique_ptr<Rings<kEntries>>& rings);
  size_t max_fpdus() const;
  void drop_rings();
  bool gather(RcBurst& burst);
  bool add_framed(RcBurst& burst, size_t index, const RcMessage& message);
  bool frame(RcBurst& burst, Result& result);
  RcFramed frame_next(RcBurst& burst);
  bool needs_copy(const RcFpdu& fpdu, const RcMessage& message) const;
  RcFramed stage(RcFpdu& fpdu, const RcMessage& message, const Context& context);
  llp::IoResult give(const Context& context, const RcBurst& burst);
  size_t advance(const Context& context, size_t bytes);
  void finish_message(const Context& context);

  // At most one of them is there.
  std::unique_ptr<Rings<kFewFpdus>> few_;
  std::unique_ptr<Rings<kBurstFpdus>> many_;
  bool wants_many_ = false;  // the few were too few
  bool rings_used_ = false;  // since the last trim()
  RcMessages messages_;
  RcFpduQueue fpdus_;  // with markers one at a time, whose bytes are among the copies
  FpduEncoder encoder_;
  bool seals_ = true;          // the stream needs the CRCs of what is framed in this run()
  bool copy_payload_ = false;  // of Sends and Writes, too
  TransmitCopies copies_;
  ZeroCopyTracker zero_copy_;
};

}  // namespace diwarp::rnic
