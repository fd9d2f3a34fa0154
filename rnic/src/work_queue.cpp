// SPDX-License-Identifier: Apache-2.0
#include "rnic/work_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ddp/scatter.h"
#include "diwarp/error.h"
#include "rnic/completion_queue.h"

namespace diwarp::rnic {

// --- Sends.

SendQueue::SendQueue(const QueuePairCapacity& capacity, bool signal_all)
    : depth_(std::bit_ceil(capacity.max_send_wr)),
      max_sge_(capacity.max_send_sge),
      max_inline_(capacity.max_inline_data),
      signal_all_(signal_all),
      mask_(depth_ - 1),
      entries_(depth_),
      sges_(size_t{depth_} * std::max(max_sge_, 1U)),
      inline_(size_t{depth_} * max_inline_) {}

std::error_code SendQueue::post(const SendWorkRequest& request) {
  const uint64_t posted = posted_.load(std::memory_order_relaxed);
  if (posted - reported_.load(std::memory_order_acquire) >= depth_) return Errc::queue_full;
  const uint64_t length = ddp::total_length(request.sges);
  if (length > kMaxMessage) return Errc::message_too_large;
  const bool inlined = has_flag(request.flags, SendFlags::inline_data);
  if (inlined && length > max_inline_) return Errc::inline_too_large;
  if (!inlined && request.sges.size() > max_sge_) return Errc::too_many_sges;

  SendEntry& slot = entry(posted);
  slot.wr_id = request.wr_id;
  slot.destination = request.destination;
  slot.q_key = request.q_key;
  slot.flags = request.flags;
  slot.status = WcStatus::success;
  slot.vendor_error = 0;
  slot.length = length;
  if (inlined) {
    copy_inline(request, slot, posted & mask_);
  } else {
    slot.sges = std::span(sges_).subspan((posted & mask_) * max_sge_, request.sges.size());
    std::copy(request.sges.begin(), request.sges.end(), slot.sges.begin());
  }
  posted_.store(posted + 1, std::memory_order_release);
  return {};
}

void SendQueue::copy_inline(const SendWorkRequest& request, SendEntry& slot, uint64_t index) {
  std::byte* const copy = inline_.data() + index * max_inline_;
  size_t at = 0;
  for (const Sge& sge : request.sges) {
    if (sge.length != 0) std::memcpy(copy + at, sge.address, sge.length);
    at += sge.length;
  }
  slot.sges = std::span(sges_).subspan(index * std::max(max_sge_, 1U), 1);
  slot.sges[0] = Sge{copy, static_cast<uint32_t>(at), 0};
}

SendEntry* SendQueue::pending(uint64_t ahead) {
  const uint64_t index = done_ + ahead;
  return index < posted_.load(std::memory_order_acquire) ? &entry(index) : nullptr;
}

void SendQueue::complete(WcStatus status, uint32_t vendor_error) {
  SendEntry& oldest = entry(done_++);
  oldest.status = status;
  oldest.vendor_error = vendor_error;
}

void SendQueue::flush() {
  while (pending() != nullptr) complete(WcStatus::wr_flush_error);
}

bool SendQueue::report(CompletionQueue& cq, uint32_t qp_number) {
  uint64_t reported = reported_.load(std::memory_order_relaxed);
  for (; reported != done_; reported_.store(++reported, std::memory_order_release)) {
    const SendEntry& oldest = entry(reported);
    const bool wanted = signal_all_ || has_flag(oldest.flags, SendFlags::signaled) ||
                        oldest.status != WcStatus::success;
    if (!wanted) continue;
    if (!cq.has_room()) return false;
    WorkCompletion completion;
    completion.wr_id = oldest.wr_id;
    completion.status = oldest.status;
    completion.opcode = WcOpcode::send;
    completion.vendor_error = oldest.vendor_error;
    completion.byte_count = static_cast<uint32_t>(oldest.length);
    completion.qp_number = qp_number;
    // Free first: who polls the completion may post again at once.
    reported_.store(reported + 1, std::memory_order_release);
    cq.push(completion);
  }
  return true;
}

void SendQueue::clear() {
  done_ = posted_.load(std::memory_order_relaxed);
  reported_.store(done_, std::memory_order_release);
}

// --- Receives.

ReceiveQueue::ReceiveQueue(const QueuePairCapacity& capacity)
    : depth_(std::bit_ceil(capacity.max_recv_wr)),
      max_sge_(capacity.max_recv_sge),
      entries_(depth_),
      sges_(size_t{depth_} * max_sge_),
      free_(depth_),
      posted_(depth_),
      returned_(depth_),
      done_(depth_) {
  for (uint32_t slot = 0; slot < depth_; ++slot) free_.try_push(slot);
}

std::error_code ReceiveQueue::post(const ReceiveWorkRequest& request) {
  if (request.sges.size() > max_sge_) return Errc::too_many_sges;
  const uint64_t capacity = ddp::total_length(request.sges);
  if (capacity > UINT32_MAX) return Errc::message_too_large;
  const uint32_t* slot = free_.front();
  if (slot == nullptr) return Errc::queue_full;
  ReceiveEntry& entry = entries_[*slot];
  entry.wr_id = request.wr_id;
  entry.capacity = capacity;
  entry.sges = std::span(sges_).subspan(size_t{*slot} * max_sge_, request.sges.size());
  std::copy(request.sges.begin(), request.sges.end(), entry.sges.begin());
  outstanding_.fetch_add(1, std::memory_order_relaxed);
  posted_.try_push(*slot);
  free_.pop();
  return {};
}

ReceiveEntry* ReceiveQueue::peek() {
  if (!returned_.empty()) return &entries_[returned_.front()];
  const uint32_t* slot = posted_.front();
  return slot == nullptr ? nullptr : &entries_[*slot];
}

ReceiveEntry* ReceiveQueue::take() {
  ReceiveEntry* entry = peek();
  if (entry == nullptr) return nullptr;
  if (!returned_.empty())
    returned_.pop_front();
  else
    posted_.pop();
  return entry;
}

void ReceiveQueue::give_back(ReceiveEntry& entry) {
  returned_.push_front(static_cast<uint32_t>(&entry - entries_.data()));
}

void ReceiveQueue::complete(ReceiveEntry& entry, const WorkCompletion& completion) {
  entry.completion = completion;
  entry.completion.wr_id = entry.wr_id;
  entry.completion.opcode = WcOpcode::recv;
  done_.push_back(static_cast<uint32_t>(&entry - entries_.data()));
}

void ReceiveQueue::flush(uint32_t qp_number) {
  WorkCompletion flushed;
  flushed.status = WcStatus::wr_flush_error;
  flushed.qp_number = qp_number;
  while (ReceiveEntry* entry = take()) complete(*entry, flushed);
}

bool ReceiveQueue::report(CompletionQueue& cq) {
  while (!done_.empty()) {
    if (!cq.has_room()) return false;
    const uint32_t slot = done_.front();
    const WorkCompletion completion = entries_[slot].completion;
    done_.pop_front();
    make_free(slot);  // first: who polls the completion may post again at once
    cq.push(completion);
  }
  return true;
}

void ReceiveQueue::make_free(uint32_t slot) {
  outstanding_.fetch_sub(1, std::memory_order_relaxed);
  free_.try_push(slot);
}

void ReceiveQueue::clear() {
  while (ReceiveEntry* entry = take()) make_free(static_cast<uint32_t>(entry - entries_.data()));
  for (; !done_.empty(); done_.pop_front()) make_free(done_.front());
}

}  // namespace diwarp::rnic
