// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/work_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>

#include "ddp/scatter.h"
#include "diwarp/error.h"
#include "rdmap/opcodes.h"
#include "rnic/queues/completion_queue.h"
#include "rnic/queues/message_log.h"

namespace diwarp::rnic {

namespace {

/// Bytes of a receive with its list, which are enough for its outcome as well.
constexpr uint32_t receive_bytes(uint32_t max_sge) {
  const size_t behind = std::max(max_sge * sizeof(Sge), sizeof(ReceiveOutcome));
  return static_cast<uint32_t>(sizeof(ReceiveEntry) + behind);
}

void copy_operands(const SendWorkRequest& request, SendEntry& entry) {
  using rdmap::Operands;
  const rdmap::WrInfo& info = rdmap::info_of(request.opcode);
  if (info.takes_immediate()) {
    if (request.immediate)
      entry.operands = *request.immediate;
    else
      entry.operands = std::monostate();
  } else if (info.takes(Operands::read_limits)) {
    entry.operands = request.limits;
  } else if (info.takes(Operands::atomic)) {
    entry.operands = request.atomic;
  } else if (info.takes(Operands::binding)) {
    entry.operands = request.binding;
  }
}

/// Most lists have one entry.
void copy_list(const SgeList& list, Sge* room) {
  if (list.size() == 1)
    *room = list[0];
  else
    std::uninitialized_copy(list.begin(), list.end(), room);
}

/// Bytes that travel of a request with so many in its list, or of a message that is its body alone.
uint64_t length_of(const SendWorkRequest& request, uint64_t listed) {
  const rdmap::WrInfo& info = rdmap::info_of(request.opcode);
  if (info.gathers || info.responded || info.local) return listed;
  return rdmap::info_of(info.opcode).body_bytes;
}

/// The data lie behind the one SGE that names them.
void copy_inline(const SendWorkRequest& request, SendEntry& slot, Sge* room) {
  auto* const copy = reinterpret_cast<std::byte*>(room + 1);
  size_t at = 0;
  for (const Sge& sge : request.sges) {
    if (sge.length != 0) std::memcpy(copy + at, sge.address, sge.length);
    at += sge.length;
  }
  *room = Sge{copy, static_cast<uint32_t>(at), 0};
  slot.sges = {room, 1};
}

}  // namespace

// --- Sends.

SendQueue::SendQueue(const QueuePairCapacity& capacity, bool signal_all, CompletionOrder order)
    : max_sge_(capacity.max_send_sge),
      max_inline_(capacity.max_inline_data),
      signal_all_(signal_all),
      mask_(std::bit_ceil(capacity.max_send_wr) - 1),
      entries_(capacity) {
  if (order == CompletionOrder::peer) by_peer_ = std::make_unique<PeerOrder>();
}

bool SendQueue::take_memory() noexcept {
  const uint32_t depth = entries_.depth();
  std::unique_ptr<uint32_t[]> slots;
  if (by_peer_) {
    slots.reset(new (std::nothrow) uint32_t[depth]);
    if (!slots || !by_peer_->take_memory(depth)) return false;
    std::iota(slots.get(), slots.get() + depth, 0U);
  }
  if (!entries_.take()) return false;
  slots_ = std::move(slots);
  return true;
}

std::error_code SendQueue::post(const SendWorkRequest& request) {
  const uint64_t posted = posted_.load(std::memory_order_relaxed);
  if (const std::error_code error = write(request, posted)) return error;
  posted_.store(posted + 1, std::memory_order_release);
  return {};
}

std::error_code SendQueue::post_withheld(const SendWorkRequest& request) {
  const uint64_t place = posted_.load(std::memory_order_relaxed) + withheld_.count();
  if (const std::error_code error = write(request, place)) return error;
  withheld_.add();
  return {};
}

std::error_code SendQueue::post_all(std::span<const SendWorkRequest> requests, bool withheld) {
  const uint64_t first = posted_.load(std::memory_order_relaxed) + withheld_.count();
  for (size_t i = 0; i < requests.size(); ++i)
    if (const std::error_code error = write(requests[i], first + i)) return error;
  if (!withheld) posted_.store(first + requests.size(), std::memory_order_release);
  for (size_t i = 0; withheld && i < requests.size(); ++i) withheld_.add();
  return {};
}

/// Fills the place in.
inline std::error_code SendQueue::write(const SendWorkRequest& request, uint64_t index) {
  // guard(posting)
  if (index - reported_.load(std::memory_order_acquire) > mask_) return Errc::queue_full;
  const uint64_t length = ddp::total_length(request.sges);
  if (length > kMaxMessage) return Errc::message_too_large;  // guard(rows:max-message-posted)
  const bool inlined = has(request.flags, SendFlags::inline_data);
  if (inlined && length > max_inline_) return Errc::inline_too_large;          // guard(posting)
  if (!inlined && request.sges.size() > max_sge_) return Errc::too_many_sges;  // guard(posting)
  if (!entries_.is_taken() && !take_memory()) return Errc::no_resources;

  const uint32_t number = slot_at(index);
  SendEntry& slot = entries_[number];
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
  slot.length = length_of(request, length);
  Sge* const room = entries_.room_of(number);
  if (inlined) {
    copy_inline(request, slot, room);
  } else {
    copy_list(request.sges, room);
    slot.sges = {room, request.sges.size()};
  }
  return {};
}

SendEntry& SendQueue::hand_over() {
  SendEntry& oldest = entry(sent_++);
  if (by_peer_) [[unlikely]]
    by_peer_->add(place_of(oldest), oldest.destination);
  return oldest;
}

void SendQueue::sent() {
  SendEntry& oldest = hand_over();
  if (!rdmap::info_of(oldest.opcode).responded) finish(oldest, WcStatus::success, 0);
}

SendEntry* SendQueue::awaiting() {
  for (awaiting_ = std::max(awaiting_, done_); awaiting_ != sent_; ++awaiting_) {
    SendEntry& oldest = entry(awaiting_);
    if (rdmap::info_of(oldest.opcode).responded && !oldest.done) return &oldest;
  }
  return nullptr;
}

void SendQueue::complete(WcStatus status, uint32_t vendor_error) {
  finish(hand_over(), status, vendor_error);
}

void SendQueue::finish(SendEntry& finished, WcStatus status, uint32_t vendor_error) {
  finished.status = status;
  finished.vendor_error = vendor_error;
  finished.done = true;
  if (by_peer_) [[unlikely]]
    return finish_of_peer(finished);
  // guard(rows:completion-order): => done_ = sent_;
  while (done_ != sent_ && entries_[done_ & mask_].done) ++done_;
  // Last: a call that something follows would have registers saved even where it is not made.
  if (log::shows(LogLevel::trace)) [[unlikely]]
    message_log::sent(log_, finished);
}

namespace {

/// Takes the validity map out of the entry. The place, which holds none, is made anew.
void write_completion(SendEntry& entry, uint32_t qp_number, WorkCompletion& completion) {
  new (&completion) WorkCompletion{.wr_id = entry.wr_id,
                                   .status = entry.status,
                                   .opcode = rdmap::info_of(entry.opcode).completion,
                                   .vendor_error = entry.vendor_error,
                                   .byte_count = static_cast<uint32_t>(entry.length),
                                   .qp_number = qp_number,
                                   .source = {},
                                   .validity = {}};
  if (auto* const validity = std::get_if<ValidityMap>(&entry.operands)) [[unlikely]] {
    completion.valid_bytes = validity->valid_bytes();
    completion.validity = std::exchange(*validity, {});
  }
}

}  // namespace

void SendQueue::finish_of_peer(const SendEntry& finished) {
  ++done_;
  by_peer_->set_done(place_of(finished));
  if (log::shows(LogLevel::trace)) [[unlikely]]
    message_log::sent(log_, finished);
}

void SendQueue::flush() {
  {
    const std::lock_guard lock(lock_);
    withheld_.publish(posted_);
  }
  for (uint32_t slot = 0; by_peer_ && !all_done(); ++slot)
    if (by_peer_->is_waiting(slot)) finish(entries_[slot], WcStatus::wr_flush_error, 0);
  while (!all_done()) finish(entry(done_), WcStatus::wr_flush_error, 0);
  while (pending() != nullptr) complete(WcStatus::wr_flush_error);
}

bool SendQueue::report_done(CompletionQueue& cq, uint32_t qp_number) {
  if (by_peer_) [[unlikely]]
    return report_by_peer(cq, qp_number);
  uint64_t reported = reported_.load(std::memory_order_relaxed);
  for (; reported != done_; reported_.store(++reported, std::memory_order_release)) {
    SendEntry& oldest = entries_[reported & mask_];
    if (!is_wanted(oldest)) continue;
    WorkCompletion* const completion = cq.next_place();
    if (completion == nullptr) return false;
    write_completion(oldest, qp_number, *completion);
    // Free first: the thread that polls the completion may post again at once.
    reported_.store(reported + 1, std::memory_order_release);
    cq.publish(*completion);
  }
  return true;
}

bool SendQueue::report_by_peer(CompletionQueue& cq, uint32_t qp_number) {
  while (const std::optional<uint32_t> slot = by_peer_->front()) {
    SendEntry& entry = entries_[*slot];
    if (!is_wanted(entry)) {
      release(*slot);
      continue;
    }
    WorkCompletion* const completion = cq.next_place();
    if (completion == nullptr) return false;
    write_completion(entry, qp_number, *completion);
    release(*slot);  // first, as above
    cq.publish(*completion);
  }
  return true;
}

/// The first request in the order of peers is reported; its entry may be posted to.
void SendQueue::release(uint32_t slot) {
  const uint64_t reported = reported_.load(std::memory_order_relaxed);
  slots_[reported & mask_] = slot;
  by_peer_->pop_front();
  reported_.store(reported + 1, std::memory_order_release);
}

/// Reset: all places are free.
void SendQueue::clear() {
  const uint64_t posted = posted_.load(std::memory_order_relaxed);
  const uint32_t depth = entries_.depth();
  if (entries_.is_taken())
    for (uint32_t slot = 0; slot < depth; ++slot) entries_[slot].operands = {};
  if (slots_) {
    by_peer_->clear();
    std::iota(slots_.get(), slots_.get() + depth, 0U);
  }
  withheld_.clear();
  done_ = sent_ = posted;
  reported_.store(done_, std::memory_order_release);
}

// --- Receives.

ReceiveQueue::ReceiveQueue(uint32_t max_wr, uint32_t max_sge, bool shared)
    : max_sge_(max_sge),
      entry_bytes_(receive_bytes(max_sge)),
      mask_(std::bit_ceil(max_wr) - 1),
      entries_(new std::byte[(mask_ + 1) * entry_bytes_]),
      ring_(new uint16_t[mask_ + 1]),
      shares_(shared) {
  static_assert(kMaxQueueDepth - 1 <= UINT16_MAX);
  for (uint64_t i = 0; i <= mask_; ++i) {
    const auto slot = static_cast<uint16_t>(i);
    new (entries_.get() + i * entry_bytes_) ReceiveEntry{.slot = slot};
    ring_[i] = slot;
  }
}

std::error_code ReceiveQueue::post(std::span<const ReceiveWorkRequest> requests, size_t& posted) {
  for (posted = 0; posted < requests.size(); ++posted)
    if (const std::error_code error = add(requests[posted])) return error;
  return {};
}

std::error_code ReceiveQueue::post_withheld(std::span<const ReceiveWorkRequest> requests,
                                            size_t& posted) {
  for (posted = 0; posted < requests.size(); ++posted) {
    const uint64_t place = posted_.load(std::memory_order_relaxed) + withheld_.count();
    if (const std::error_code error = write(requests[posted], place)) return error;
    withheld_.add();
  }
  return {};
}

void ReceiveQueue::publish_withheld() {
  const std::lock_guard lock(lock_);
  withheld_.publish(posted_);
}

std::error_code ReceiveQueue::add(const ReceiveWorkRequest& request) {
  const uint64_t posted = posted_.load(std::memory_order_relaxed);
  if (const std::error_code error = write(request, posted)) return error;
  posted_.store(posted + 1, std::memory_order_release);
  return {};
}

/// Fills the place in.
inline std::error_code ReceiveQueue::write(const ReceiveWorkRequest& request, uint64_t index) {
  if (request.sges.size() > max_sge_) return Errc::too_many_sges;  // guard(posting)
  const uint64_t capacity = ddp::total_length(request.sges);
  if (capacity > UINT32_MAX) return Errc::message_too_large;  // guard(posting)
  // guard(posting)
  if (index - released_.load(std::memory_order_acquire) > mask_) return Errc::queue_full;
  ReceiveEntry& slot = entry(ring_[index & mask_]);
  slot.wr_id = request.wr_id;
  slot.capacity = static_cast<uint32_t>(capacity);
  slot.sge_count = static_cast<uint16_t>(request.sges.size());
  copy_list(request.sges, slot.sges().data());
  return {};
}

void ReceiveQueue::release(ReceiveEntry& entry) {
  const uint64_t released = released_.load(std::memory_order_relaxed);
  ring_[released & mask_] = entry.slot;
  released_.store(released + 1, std::memory_order_release);
}

void ReceiveQueue::clear() {
  withheld_.clear();
  while (ReceiveEntry* entry = take_receive()) release(*entry);
}

// --- Done receives.

namespace {

ReceiveOutcome& outcome(ReceiveEntry& entry) {
  return *std::launder(reinterpret_cast<ReceiveOutcome*>(&entry + 1));
}

void write_completion(ReceiveEntry& entry, uint32_t qp_number, WorkCompletion& completion) {
  const ReceiveOutcome& done = outcome(entry);
  new (&completion) WorkCompletion{.wr_id = entry.wr_id,
                                   .status = done.status,
                                   .opcode = done.opcode,
                                   .solicited = done.solicited,
                                   .invalidated = done.invalidated,
                                   .invalidated_stag = done.invalidated_stag,
                                   .byte_count = done.byte_count,
                                   .qp_number = qp_number,
                                   .has_immediate = done.has_immediate,
                                   .immediate = done.immediate,
                                   .source = done.source,
                                   .validity = {}};
}

}  // namespace

ReceiveEntry& DoneReceives::pop_front() {
  ReceiveEntry& entry = *first_;
  first_ = entry.next;
  if (first_ == nullptr) last_ = nullptr;
  ++reported_;
  return entry;
}

bool DoneReceives::report_up_to(CompletionQueue& cq, ReceiveQueue& queue, uint64_t up_to,
                                uint32_t qp_number) {
  while (first_ != nullptr && reported_ < up_to) {
    WorkCompletion* const completion = cq.next_place();
    if (completion == nullptr) return false;
    ReceiveEntry& entry = pop_front();
    write_completion(entry, qp_number, *completion);
    queue.release(entry);  // first: after the completion the application may post at once
    cq.publish(*completion);
  }
  return true;
}

void DoneReceives::clear(ReceiveQueue& queue) {
  while (first_ != nullptr) queue.release(pop_front());
}

}  // namespace diwarp::rnic
