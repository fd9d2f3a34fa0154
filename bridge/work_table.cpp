// SPDX-License-Identifier: Apache-2.0
#include "bridge/work_table.h"

#include <endian.h>

#include <bit>
#include <numeric>

#include "bridge/protection_domain.h"

namespace diwarp::bridge {
namespace {

WcStatus status_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return WcStatus::success;
    case IBV_WC_LOC_LEN_ERR:
      return WcStatus::local_length_error;
    case IBV_WC_LOC_QP_OP_ERR:
      return WcStatus::local_qp_operation_error;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return WcStatus::local_protection_error;
    case IBV_WC_WR_FLUSH_ERR:
      return WcStatus::wr_flush_error;
    case IBV_WC_MW_BIND_ERR:
      return WcStatus::window_bind_error;
    case IBV_WC_BAD_RESP_ERR:
      return WcStatus::bad_response_error;
    case IBV_WC_REM_ACCESS_ERR:
      return WcStatus::remote_access_error;
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
      return WcStatus::remote_operation_error;
    default:
      return WcStatus::general_error;
  }
}

/// The parts that completions of all requests have.
void describe(const ibv_wc& wc, uint64_t wr_id, WcOpcode opcode, WorkCompletion& out) {
  out = WorkCompletion();
  out.wr_id = wr_id;
  out.status = status_of(wc.status);
  out.opcode = opcode;
  out.vendor_error = wc.status == IBV_WC_SUCCESS ? 0 : wc.vendor_err;
}

/// What a receive's completion tells of the message.
void describe_message(const ibv_wc& wc, ProtectionDomain& domain, WorkCompletion& out) {
  if (out.status != WcStatus::success) return;
  out.byte_count = wc.byte_len;
  const auto flags = static_cast<unsigned>(wc.wc_flags);
  if ((flags & IBV_WC_WITH_INV) != 0) {
    out.invalidated = true;
    out.invalidated_stag = wc.invalidated_rkey;
    domain.invalidated(wc.invalidated_rkey, true);
  }
  if ((flags & IBV_WC_WITH_IMM) != 0) {
    out.opcode = WcOpcode::recv_immediate;
    out.immediate = be32toh(wc.imm_data);
  }
}

uint32_t next_number() {
  static std::atomic<uint32_t> last{0};
  return ++last;
}

}  // namespace

WorkTable::WorkTable() : number_(next_number()) {}

QueueTable::QueueTable(uint32_t capacity, ibv_qp& queue_pair, ProtectionDomain& domain)
    : capacity_(capacity),
      mask_(places(capacity) - 1),
      requests_(std::make_unique<Request[]>(places(capacity))),
      qp_number_(queue_pair.qp_num),
      queue_pair_(queue_pair),
      domain_(domain) {}

// What the device has completed, and nobody fetched, is known to nobody.
QueueTable::~QueueTable() { end_bindings(finished_, BindingEnd::unknown); }

/// Those from this place on.
void QueueTable::end_bindings(uint64_t from, BindingEnd end) {
  for (uint64_t place = from; place < posted_; ++place) {
    const Request& request = at(place);
    if (request.opcode == WcOpcode::bind_window)
      domain_.end_binding(request.binding, request.binding_number, end);
  }
}

void QueueTable::take_back(uint32_t count) {
  end_bindings(posted_ - count, BindingEnd::failed);
  posted_.fetch_sub(count, std::memory_order_release);
}

/// A power of two: a remainder would cost more than all else of a post.
size_t QueueTable::places(uint32_t capacity) { return std::bit_ceil(size_t{capacity}); }

uint32_t QueueTable::add() {
  const uint64_t place = posted_.load(std::memory_order_relaxed);
  at(place).completed = false;
  posted_.store(place + 1, std::memory_order_release);
  return static_cast<uint32_t>(place);
}

void QueueTable::add_flushed() {
  const uint64_t place = posted_.load(std::memory_order_relaxed);
  Request& request = at(place);
  request.completed = true;
  request.result = ibv_wc{};
  request.result.status = IBV_WC_WR_FLUSH_ERR;
  posted_.store(place + 1, std::memory_order_release);
}

uint64_t QueueTable::place_of(uint32_t slot) const {
  const uint64_t freed = freed_.load(std::memory_order_relaxed);
  return freed + static_cast<uint32_t>(slot - static_cast<uint32_t>(freed));
}

void QueueTable::complete(const ibv_wc& wc, uint32_t slot, CompletionSink& sink) {
  const uint64_t place = place_of(slot);
  if (place >= posted_.load(std::memory_order_acquire)) return;
  if (wc.status == IBV_WC_WR_FLUSH_ERR && keeps_flushed_.load(std::memory_order_acquire)) return;
  const uint64_t next = finished_.load(std::memory_order_relaxed);
  if (place != next) {
    at(place).completed = true;
    at(place).result = wc;
    return;
  }
  finish(next, wc, sink);
  finish_completed_from(next + 1, sink);
}

void QueueTable::finish_completed(CompletionSink& sink) {
  finish_completed_from(finished_.load(std::memory_order_relaxed), sink);
}

/// All before `next` are finished.
void QueueTable::finish_completed_from(uint64_t next, CompletionSink& sink) {
  for (; next != posted_.load(std::memory_order_acquire) && at(next).completed; ++next)
    finish(next, at(next).result, sink);
  finished_.store(next, std::memory_order_release);
  free_finished(freed_.load(std::memory_order_relaxed));
}

/// It is this request's turn.
void QueueTable::finish(uint64_t place, const ibv_wc& wc, CompletionSink& sink) {
  Request& request = at(place);
  const bool good = wc.status == IBV_WC_SUCCESS;
  if (request.opcode == WcOpcode::bind_window)
    domain_.end_binding(request.binding, request.binding_number,
                        good ? BindingEnd::bound : BindingEnd::failed);
  if (good)
    apply(request);
  else
    request.reported = true;
  if (!request.reported) return;
  WorkCompletion& out = sink.add(*this, static_cast<uint32_t>(place));
  describe(wc, request.wr_id, request.opcode, out);
  out.byte_count = request.bytes;
  out.qp_number = qp_number_;
  if (request.opcode == WcOpcode::recv) describe_message(wc, domain_, out);
  if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR) fail();
}

/// An error ends the connection; siw leaves it where a peer's invalidation fails.
void QueueTable::fail() {
  if (failed_.exchange(true, std::memory_order_relaxed)) return;
  enter_error(queue_pair_, domain_.device().verbs());
}

void QueueTable::release(uint32_t slot) { free_finished(place_of(slot) + 1); }

/// All before `from` is free, and what follows and nobody is told of.
void QueueTable::free_finished(uint64_t from) {
  while (from < finished_.load(std::memory_order_relaxed) && !at(from).reported) ++from;
  freed_.store(from, std::memory_order_release);
}

std::vector<uint32_t> QueueTable::outstanding() const {
  std::vector<uint32_t> slots;
  for (uint64_t place = finished_; place < posted_; ++place)
    slots.push_back(static_cast<uint32_t>(place));
  return slots;
}

void QueueTable::apply(const Request& request) {
  if (request.opcode == WcOpcode::local_invalidate)
    domain_.invalidated(request.binding.stag, false);
}

SharedTable::SharedTable(uint32_t capacity, ProtectionDomain& domain, ReceiveObserver& observer)
    : domain_(domain), observer_(observer), wr_ids_(capacity), free_(capacity) {
  std::iota(free_.rbegin(), free_.rend(), 0u);
}

bool SharedTable::add(uint64_t wr_id, uint32_t& slot) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return false;
  slot = free_.back();
  free_.pop_back();
  wr_ids_[slot] = wr_id;
  return true;
}

uint32_t SharedTable::posted() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(wr_ids_.size() - free_.size()) - completed_;
}

void SharedTable::take_back(uint32_t slot) {
  const std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

void SharedTable::complete(const ibv_wc& wc, uint32_t slot, CompletionSink& sink) {
  if (slot >= wr_ids_.size()) return;
  WorkCompletion& out = sink.add(*this, slot);
  observer_.on_receive_taken();
  const std::lock_guard lock(mutex_);
  ++completed_;
  describe(wc, wr_ids_[slot], WcOpcode::recv, out);
  out.qp_number = wc.qp_num;
  describe_message(wc, domain_, out);
}

void SharedTable::release(uint32_t slot) {
  const std::lock_guard lock(mutex_);
  --completed_;
  free_.push_back(slot);
}

}  // namespace diwarp::bridge
