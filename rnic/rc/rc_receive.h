// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/counters.h"
#include "diwarp/stream_options.h"
#include "llp/stream.h"
#include "mpa/fpdu.h"
#include "mpa/negotiated_parameters.h"
#include "rnic/rc/partial_fpdu_buffer.h"
#include "rnic/rc/rc_direct_placement.h"
#include "rnic/rc/rc_end.h"
#include "rnic/rc/rc_segment_receiver.h"

namespace diwarp::rnic {

// Tunables of RC reception.

/// FPDUs of so many bytes and more are long: one that was cut is completed where its beginning
/// lies. Of a ULPDU of which so many bytes are still to come, these are read directly into the
/// application's memory, where that may be. For less, a copy costs less than the additional system
/// call.
inline constexpr size_t kLongFpdu = 8192;
/// The most bytes of one read while FPDUs are expected that go directly into memory: enough for a
/// header, and little to copy.
inline constexpr size_t kReadBeforeLong = 4096;
/// After a long FPDU the next ones are expected to be long as well, until so many were not: a
/// message may end with a short one.
inline constexpr uint32_t kExpectLong = 4;

/// The receiving half of an RC queue pair: takes FPDUs off the stream, and gives their ULPDUs to
/// RcSegmentReceiver, which checks, places and delivers.
///
/// A message that finds no receive holds the stream: the bytes read after it are kept, nothing more
/// is read, and TCP makes the peer wait. Or, if the queue pair wants that, it ends the
/// connection.
///
/// FPDUs are read together, as many as there are, into the engine's buffer. With CRCs (or markers)
/// nothing may be placed before an FPDU is whole: a long one that is cut waits in the queue pair's
/// own memory, and its rest is read there. Without, all that is to be checked is in the header:
/// once that is there, the payload of a long FPDU is read directly into the application's memory.
class RcReceive {
 public:
  RcReceive(const RcSegmentReceiver::Parts& parts, Counters& counters, ReceiveNotReady policy)
      : counters_(counters), segments_(parts, policy) {}

  /// For a new stream, of which `leftover` was read already: resume() takes it.
  void start(const mpa::NegotiatedParameters& parameters, bool initiator, ConstBytes leftover);

  /// Reads once from the stream, through `buffer`, and takes what is there. Not while a message
  /// holds it.
  RcEnd read(llp::Stream& stream, Bytes buffer);
  /// Bytes that came with the last read().
  size_t came() const { return came_; }

  /// Takes what is kept: after start(), or when there may be a receive for what is held.
  RcEnd resume();
  /// The same, but a message that finds no receive now ends the connection.
  RcEnd give_up_waiting();
  /// This side may send FPDUs: it is the initiator, or MPA has found an FPDU of the initiator valid
  /// (RFC 5044 section 7.1.2, rule 4).
  bool heard() const { return heard_; }

  /// The message that is under way, and whether it holds the stream.
  RcDelivery& delivery() { return segments_.delivery(); }
  const RcDelivery& delivery() const { return segments_.delivery(); }
  /// Why the connection ends.
  const RcTermination& termination() const { return segments_.termination(); }

  /// The stream ends: frees what was kept of an unfinished FPDU, and completes the receive of an
  /// unfinished message. A message of which not one FPDU came to its end has none: the receive that
  /// was taken for it is the next again.
  void abandon(WcStatus status);
  /// The same, but the receive that was taken for a message is the next again in any case.
  void give_back();

  bool keeps_memory() const { return partial_fpdus_.keeps_memory(); }
  /// Frees memory that was not used since the last call. True if there may be some to free later.
  bool trim() { return partial_fpdus_.trim(); }

 private:
  template <class Work>
  RcEnd within_memory(Work&& work);
  RcEnd read_cut(llp::Stream& stream, Bytes buffer);
  RcEnd read_ahead(llp::Stream& stream, Bytes buffer);
  RcEnd take_read(llp::Stream& stream, Bytes buffer, size_t filled);
  RcEnd conclude();
  bool book(const llp::IoResult& result);
  size_t consume(ConstBytes bytes);
  bool begin_direct(ConstBytes rest);
  RcEnd read_direct(llp::Stream& stream, Bytes buffer);
  void finish_direct();
  void forget();

  Counters& counters_;
  RcSegmentReceiver segments_;
  size_t came_ = 0;
  size_t needed_ = 0;  // bytes that the FPDU at the front takes, as far as known
  mpa::Deframer deframer_;
  PartialFpduBuffer partial_fpdus_;
  uint32_t expects_long_ = 0;  // of kExpectLong
  bool heard_ = false;
  RcDirectPlacement direct_placement_;
};

}  // namespace diwarp::rnic
