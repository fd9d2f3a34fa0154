// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"
#include "llp/stream.h"
#include "rdmap/stream.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

class RcQueuePair;

/// Why a connection ends.
enum class RcEnd : uint8_t {
  none,            ///< it does not
  closed,          ///< the peer ended the stream between two messages
  lost,            ///< the stream broke, or ended inside a message
  bad_crc,         ///< of an FPDU
  protocol_error,  ///< the peer broke a rule of MPA, DDP or RDMAP, or ended with a Terminate
  bad_receive,     ///< no receive was posted in time, or its memory may not be written
  bad_send,        ///< a send's memory may not be read
};

/// What stays allocated for unfinished FPDUs of an idle queue pair, in bytes.
inline constexpr size_t kIdleCarry = 4096;

/// The receiving half of an RC queue pair: takes FPDUs off the stream, judges, places and delivers.
///
/// A message that finds no receive holds the stream: what was read behind it is carried, nothing
/// more is read, and TCP makes the peer wait.
class RcReceive {
 public:
  RcReceive(RcQueuePair& queue_pair, ReceiveQueue& receives, Counters& counters)
      : queue_pair_(queue_pair), receives_(receives), counters_(counters) {}

  /// For a new stream, of which `leftover` was read already: resume() takes it.
  void start(bool check_crc, ConstBytes leftover);

  /// Reads once from the stream, through `buffer`, and takes what is there. Not while held().
  RcEnd read(llp::Stream& stream, Bytes buffer);
  /// Bytes that came with the last read().
  size_t came() const { return came_; }

  /// Takes what is carried: after start(), or when there may be a receive for what is held.
  RcEnd resume();
  bool held() const { return held_; }
  /// A valid FPDU came, so that a responder may send.
  bool heard() const { return heard_; }
  /// From now on messages that find no receive are read and forgotten.
  void discard_unwanted() { discards_ = true; }

  /// Completes the receive of an unfinished message.
  void finish(WcStatus status);
  /// Undoes the taking of that receive.
  void give_back();

  bool keeps_memory() const { return carry_.capacity() > kIdleCarry; }
  /// Frees memory that was not used since the last call. True if there may be some to free later.
  bool trim();

 private:
  RcEnd conclude(ConstBytes rest);
  bool pull(llp::Stream& stream, Bytes room);
  size_t consume(ConstBytes bytes);
  bool take(ConstBytes ulpdu);
  bool begin_message();
  bool place(const rdmap::StreamSegment& segment);
  bool end(RcEnd reason);
  void deliver(const rdmap::StreamSegment& segment);
  void complete(WorkCompletion completion);
  ConstBytes carried() const { return ConstBytes(carry_).subspan(carry_begin_); }
  void carry(ConstBytes rest);

  RcQueuePair& queue_pair_;
  ReceiveQueue& receives_;
  Counters& counters_;

  bool check_crc_ = true;
  bool discards_ = false;
  bool held_ = false;
  bool heard_ = false;
  RcEnd end_ = RcEnd::none;
  size_t came_ = 0;
  size_t needed_ = 0;  // bytes that the FPDU at the front takes, as far as known

  rdmap::StreamReceiver receiver_;
  ReceiveEntry* entry_ = nullptr;  // of the message that is under way; null: it is discarded
  bool entry_judged_ = false;      // its memory was checked in this call

  std::vector<std::byte> carry_;  // read, but not yet taken, from carry_begin_ on
  size_t carry_begin_ = 0;
  bool carry_used_ = false;  // since the last trim()
};

}  // namespace diwarp::rnic
