// SPDX-License-Identifier: Apache-2.0
#include "rnic/work_queue.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "ddp/scatter.h"
#include "diwarp/error.h"
#include "rnic/completion_queue.h"

namespace diwarp::rnic {

namespace {

// clang-format off
constexpr std::array kFacts{
    //      opcode                               completion                 responded local gathers stream datagram
    WrFacts{WrOpcode::send,                      WcOpcode::send,             false, false, true,  true,  true},
    WrFacts{WrOpcode::send_with_invalidate,      WcOpcode::send,             false, false, true,  true,  true},
    WrFacts{WrOpcode::rdma_write,                WcOpcode::rdma_write,       false, false, true,  true,  false},
    WrFacts{WrOpcode::rdma_read,                 WcOpcode::rdma_read,        true,  false, false, true,  true},
    WrFacts{WrOpcode::rdma_read_with_invalidate, WcOpcode::rdma_read,        true,  false, false, true,  false},
    WrFacts{WrOpcode::immediate,                 WcOpcode::immediate,        false, false, false, true,  false},
    WrFacts{WrOpcode::fetch_add,                 WcOpcode::fetch_add,        true,  false, false, true,  false},
    WrFacts{WrOpcode::compare_swap,              WcOpcode::compare_swap,     true,  false, false, true,  false},
    WrFacts{WrOpcode::swap,                      WcOpcode::swap,             true,  false, false, true,  false},
    WrFacts{WrOpcode::local_invalidate,          WcOpcode::local_invalidate, false, true,  false, true,  true},
    WrFacts{WrOpcode::bind_window,               WcOpcode::bind_window,      false, true,  false, true,  true},
    WrFacts{WrOpcode::register_memory,           WcOpcode::register_memory,  false, true,  false, true,  true},
    WrFacts{WrOpcode::write_record,              WcOpcode::write_record,     false, false, true,  false, true},
};
// clang-format on

constexpr uint64_t kImmediateData = 8;  // bytes

constexpr bool in_order() {
  for (size_t i = 0; i < kFacts.size(); ++i)
    if (static_cast<size_t>(kFacts[i].opcode) != i) return false;
  return true;
}
static_assert(in_order());

void copy_operands(const SendWorkRequest& request, SendEntry& entry) {
  switch (request.opcode) {
    case WrOpcode::send:
    case WrOpcode::send_with_invalidate:
    case WrOpcode::write_record:
    case WrOpcode::immediate: entry.operands = request.immediate; break;
    case WrOpcode::rdma_read: entry.operands = request.limits; break;
    case WrOpcode::fetch_add:
    case WrOpcode::compare_swap:
    case WrOpcode::swap: entry.operands = request.atomic; break;
    case WrOpcode::bind_window:
    case WrOpcode::register_memory: entry.operands = request.binding; break;
    default: break;
  }
}

}  // namespace

const WrFacts& facts_of(WrOpcode opcode) { return kFacts[static_cast<size_t>(opcode)]; }

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
  slot.opcode = request.opcode;
  slot.flags = request.flags;
  slot.status = WcStatus::success;
  slot.done = false;
  slot.invalidate_stag = request.invalidate_stag;
  slot.remote = request.remote;
  copy_operands(request, slot);
  slot.vendor_error = 0;
  slot.length = request.opcode == WrOpcode::immediate ? kImmediateData : length;
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
  const uint64_t index = sent_ + ahead;
  return index < posted_.load(std::memory_order_acquire) ? &entry(index) : nullptr;
}

void SendQueue::sent() {
  SendEntry& oldest = entry(sent_++);
  if (!facts_of(oldest.opcode).responded) finish(oldest, WcStatus::success, 0);
}

void SendQueue::complete(WcStatus status, uint32_t vendor_error) {
  finish(entry(sent_++), status, vendor_error);
}

void SendQueue::finish(SendEntry& finished, WcStatus status, uint32_t vendor_error) {
  finished.status = status;
  finished.vendor_error = vendor_error;
  finished.done = true;
  while (done_ != sent_ && entry(done_).done) ++done_;
}

void SendQueue::flush() {
  while (awaiting() != nullptr) answered(WcStatus::wr_flush_error);
  while (pending() != nullptr) complete(WcStatus::wr_flush_error);
}

bool SendQueue::report(CompletionQueue& cq, uint32_t qp_number) {
  uint64_t reported = reported_.load(std::memory_order_relaxed);
  for (; reported != done_; reported_.store(++reported, std::memory_order_release)) {
    SendEntry& oldest = entry(reported);
    const bool wanted = signal_all_ || has_flag(oldest.flags, SendFlags::signaled) ||
                        oldest.status != WcStatus::success;
    if (!wanted) continue;
    if (!cq.has_room()) return false;
    WorkCompletion completion;
    completion.wr_id = oldest.wr_id;
    completion.status = oldest.status;
    completion.opcode = facts_of(oldest.opcode).completion;
    completion.vendor_error = oldest.vendor_error;
    completion.byte_count = static_cast<uint32_t>(oldest.length);
    completion.qp_number = qp_number;
    completion.valid_bytes = oldest.validity.valid_bytes();
    completion.validity = std::exchange(oldest.validity, {});
    // Free first: who polls the completion may post again at once.
    reported_.store(reported + 1, std::memory_order_release);
    cq.push(std::move(completion));
  }
  return true;
}

void SendQueue::clear() {
  const uint64_t posted = posted_.load(std::memory_order_relaxed);
  for (uint64_t index = reported_.load(std::memory_order_relaxed); index != posted; ++index)
    entry(index).validity = {};
  done_ = sent_ = posted;
  reported_.store(done_, std::memory_order_release);
}

// --- Receives.

ReceiveQueue::ReceiveQueue(uint32_t max_wr, uint32_t max_sge)
    : depth_(std::bit_ceil(max_wr)),
      max_sge_(max_sge),
      entries_(depth_),
      sges_(size_t{depth_} * max_sge_),
      free_(depth_),
      posted_(depth_),
      returned_(depth_) {
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

void ReceiveQueue::release(ReceiveEntry& entry) {
  outstanding_.fetch_sub(1, std::memory_order_relaxed);
  free_.try_push(static_cast<uint32_t>(&entry - entries_.data()));
}

void ReceiveQueue::clear() {
  while (ReceiveEntry* entry = take()) release(*entry);
}

// --- Done receives.

void DoneReceives::add(ReceiveEntry& entry, WorkCompletion&& completion) {
  entry.completion = std::move(completion);
  entry.completion.wr_id = entry.wr_id;
  entry.next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = &entry;
  last_ = &entry;
  ++added_;
}

ReceiveEntry& DoneReceives::pop_front() {
  ReceiveEntry& entry = *first_;
  first_ = entry.next;
  if (first_ == nullptr) last_ = nullptr;
  ++reported_;
  return entry;
}

bool DoneReceives::report(CompletionQueue& cq, ReceiveQueue& queue, uint64_t up_to) {
  while (first_ != nullptr && reported_ < up_to) {
    if (!cq.has_room()) return false;
    ReceiveEntry& entry = pop_front();
    WorkCompletion completion = std::move(entry.completion);
    queue.release(entry);  // first: who polls the completion may post again at once
    cq.push(std::move(completion));
  }
  return true;
}

void DoneReceives::clear(ReceiveQueue& queue) {
  while (first_ != nullptr) queue.release(pop_front());
}

}  // namespace diwarp::rnic
