// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_delivery.h"

#include "rnic/queues/receive_buffers.h"

namespace diwarp::rnic {

namespace {

namespace fault = rdmap::fault;

}  // namespace

void RcDelivery::start() {
  discards_ = discarded_ = held_ = false;
  holds_ = policy_ == ReceiveNotReady::hold;  // guard(policy-terminate): => holds_ = true;
}

bool RcDelivery::begin(ConstBytes ulpdu, RcTermination& termination) {
  entry_ = discarded_ ? nullptr : receives_.take_receive();
  discarded_ = entry_ == nullptr && discards_;
  if (entry_ == nullptr && !discards_) {
    held_ = holds_ && !receives_.await();  // guard(rc): => held_ = false;
    if (held_) return false;               // guard(rows:held-before-answers)
    entry_ = receives_.take_receive();
    // guard(rows:send-without-receive)
    if (entry_ == nullptr) return termination.end(RcEnd::bad_receive, fault::kNoBuffer, ulpdu);
  }
  entry_checked_ = false;
  return true;
}

bool RcDelivery::place(const rdmap::StreamSegment& segment, ConstBytes ulpdu,
                       RcTermination& termination) {
  if (entry_ == nullptr) return true;
  // guard(rows:send-too-long): condition => false
  if (!entry_->buffer().holds(segment.message_offset, segment.length())) {
    // guard(rows:check-send-before-placing): first ddp::scatter(entry_->sges(),
    //     segment.message_offset, segment.payload.first(entry_->capacity -
    //     segment.message_offset));
    finish(WcStatus::local_length_error);
    return termination.end(RcEnd::protocol_error, fault::kMessageTooLong, ulpdu);
  }
  // guard(rc): condition => false
  if (!entry_checked_ && !protection_.may_write(entry_->sges())) {
    finish(WcStatus::local_protection_error);
    return termination.end(RcEnd::bad_receive, fault::kLocalCatastrophic, {});
  }
  entry_checked_ = true;
  protection_.checked_target(entry_->sges()).place(segment.message_offset, segment.payload);
  // guard(rows:deliver-when-whole): without !segment.last ||
  return !segment.last || deliver(segment, ulpdu, termination);
}

bool RcDelivery::deliver(const rdmap::StreamSegment& segment, ConstBytes ulpdu,
                         RcTermination& termination) {
  const rdmap::OpcodeInfo& info = rdmap::info_of(segment.opcode);
  // guard(peer-invalidates): invalidate_for_peer => invalidate
  if (info.invalidates &&  // guard(rows:invalidated-before-delivery): info.invalidates => false
      protection_.invalidate_for_peer(segment.invalidate_stag) != ddp::RegionFault::none) {
    finish(WcStatus::general_error);
    return termination.end(RcEnd::protocol_error, fault::kStagNotInvalidated, ulpdu);
  }
  ReceiveOutcome outcome;
  outcome.solicited = info.solicited;  // guard(rows:send-tells)
  outcome.invalidated = info.invalidates;
  outcome.invalidated_stag = segment.invalidate_stag;  // guard(rows:send-tells)
  // guard(rows:send-tells)
  // guard(rows:length-told): without segment.message_offset +
  outcome.byte_count = static_cast<uint32_t>(segment.message_offset + segment.length());
  finish(outcome);
  return true;
}

std::optional<ddp::PlacementTarget> RcDelivery::target_of(const rdmap::StreamSegment& segment,
                                                          bool starts) const {
  if (starts && discarded_) return std::nullopt;
  const ReceiveEntry* entry = starts ? receives_.peek() : entry_;
  if (entry == nullptr) return std::nullopt;
  const auto [found, buffer] =
      protection_.check_untagged(entry->buffer(), segment.message_offset, segment.length());
  // guard(direct-placement): condition => found == ddp::BufferFault::protection
  // guard(direct-placement): condition => found == ddp::BufferFault::too_long
  if (found != ddp::BufferFault::none) return std::nullopt;
  return buffer.from(segment.message_offset);
}

void RcDelivery::take_receive() { entry_ = receives_.take_receive(); }

void RcDelivery::finish(WcStatus status) { finish(ReceiveOutcome{.source = {}, .status = status}); }

void RcDelivery::finish(const ReceiveOutcome& outcome) {
  if (entry_ == nullptr) return;
  receives_.complete(*entry_, outcome);
  entry_ = nullptr;
}

void RcDelivery::give_back() {
  if (entry_ != nullptr) receives_.give_back(*entry_);
  entry_ = nullptr;
}

}  // namespace diwarp::rnic
