// SPDX-License-Identifier: Apache-2.0
#include "end.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

namespace diwarp::explore {

namespace {

using namespace std::chrono_literals;

constexpr uint32_t kQKey = 7;
constexpr size_t kProbeBytes = 16;
constexpr std::byte kReleased{0xee};
/// wr_ids of requests outside the scenario.
constexpr uint64_t kOutside = 1000;
constexpr Access kTargetAccess = Access::local_write | Access::remote_write | Access::remote_read;

WrOpcode opcode_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::send:
      return WrOpcode::send;
    case OperationKind::record:
      return WrOpcode::write_record;
    case OperationKind::read:
      return WrOpcode::rdma_read;
  }
  return WrOpcode::send;
}

void check_posted(const std::error_code& error) {
  if (error) throw std::runtime_error("A request cannot be posted: " + error.message());
}

}  // namespace

End::End(Device& device, const Scenario& scenario, Ledger& ledger, size_t side)
    : scenario_(scenario),
      ledger_(ledger),
      side_(side),
      pd_(device),
      cq_(device, 128),
      buffers_(scenario.operations[side].size()),
      targets_(scenario.operations[other(side)].size()),
      receive_memory_(kSlotBytes * kMostReceives),
      receive_region_(pd_, receive_memory_),
      probe_memory_(kProbeBytes),
      probe_region_(pd_, probe_memory_, kTargetAccess) {
  for (Slot& slot : buffers_) slot.region.emplace(pd_, std::span(slot.memory));
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Operation& operation = scenario.operations[other(side)][i];
    if (operation.kind == OperationKind::send) continue;
    targets_[i].region.emplace(pd_, std::span(targets_[i].memory), kTargetAccess);
    if (operation.kind == OperationKind::read)
      std::ranges::copy(contents_of(other(side), i, operation.length()),
                        targets_[i].memory.begin());
  }
  make_queue_pair(0);
}

void End::make_queue_pair(uint16_t port) {
  qp_.emplace(pd_, QueuePairInit{.type = QpType::rd,
                                 .send_cq = cq_,
                                 .recv_cq = cq_,
                                 .capacity = {.max_send_wr = 32, .max_recv_wr = 32},
                                 .datagram = {.port = port, .q_key = kQKey, .segment = kSegment},
                                 .reliable = {.peer_timeout = 5s,
                                              .keep_alive = 200ms,
                                              .idle_timeout = 2s,
                                              .receive_window = scenario_.window,
                                              .max_buffer = scenario_.buffer}});
}

void End::violation(const std::string& message) {
  ledger_.violation(std::string(1, name_of_side(side_)) + ": " + message);
}

// --- Requests.

void End::post_request(SendWorkRequest request, const Sge& sge) {
  if (sge.length != 0) request.sges = {&sge, 1};
  check_posted(qp_->post_send(request));
}

void End::post(size_t index, const End& peer) {
  const Operation& operation = scenario_.operations[side_][index];
  Slot& slot = buffers_[index];
  const Slot& target = peer.targets_[index];
  const size_t length = operation.length();
  if (operation.kind != OperationKind::read)
    std::ranges::copy(contents_of(side_, index, length), slot.memory.begin());
  SendWorkRequest request{.wr_id = index,
                          .destination = peer.qp_->address(),
                          .q_key = operation.flaw == Flaw::q_key ? kQKey + 1 : kQKey,
                          .opcode = opcode_of(operation.kind)};
  if (target.region) request.remote = {target.region->rkey(), target.region->base()};
  if (operation.flaw == Flaw::stag) request.remote.stag ^= 1;  // another key of the same entry
  slot.released = false;
  ledger_.posted(side_, index);
  // A buffer that is gone has no STag any more; the request is posted all the same, and fails.
  post_request(request, slot.region ? slot.region->sge(0, length)
                                    : Sge{slot.memory.data(), static_cast<uint32_t>(length), 0});
}

std::span<std::byte> End::receive_memory(size_t index) {
  return std::span(receive_memory_).subspan(index % kMostReceives * kSlotBytes, kSlotBytes);
}

/// A receive may be used at once, and what is done then may fail.
void End::post_receives(size_t count) {
  for (size_t i = 0; i < count && !has_failed(); ++i) {
    const size_t index = posted_receives_++;
    receives_.push_back(index);
    released_receives_[index % kMostReceives] = false;
    const Sge sge =
        receive_region_.sge(index % kMostReceives * kSlotBytes, scenario_.receive_bytes());
    check_posted(qp_->post_recv({.wr_id = index, .sges = {&sge, 1}}));
  }
}

void End::deregister_target(size_t operation) {
  targets_[operation].region.reset();
  release(targets_[operation]);
}

void End::invalidate_target(size_t operation) {
  const Slot& slot = targets_[operation];
  if (!slot.region) return;
  ++pending_;
  post_request({.wr_id = kOutside,
                .opcode = WrOpcode::local_invalidate,
                .invalidate_stag = slot.region->rkey()},
               {});
}

void End::deregister_buffer(size_t operation) {
  buffers_[operation].region.reset();
  release(buffers_[operation]);
}

/// The memory is used for something else from now on.
void End::release(Slot& slot) {
  slot.released = true;
  std::ranges::fill(slot.memory, kReleased);
}

void End::reset() {
  for (const QpState state : {QpState::reset, QpState::init, QpState::rts}) qp_->modify(state);
  receives_.clear();
  pending_ = 0;
}

void End::make_anew() {
  const uint16_t port = qp_->address().port();
  qp_.reset();
  make_queue_pair(port);
  receives_.clear();
  pending_ = 0;
}

// --- Completions.

bool End::drain() {
  std::array<WorkCompletion, 16> batch;
  while (const size_t count = cq_.poll(batch))
    for (const WorkCompletion& wc : std::span(batch).first(count)) complete(wc);
  return qp_->state() == QpState::rts;
}

void End::step() {
  std::array<WorkCompletion, 16> batch;
  for (const WorkCompletion& wc : std::span(batch).first(cq_.poll(batch))) complete(wc);
}

void End::complete(const WorkCompletion& wc) {
  if (wc.opcode == WcOpcode::recv) return take_receive(wc);
  if (wc.opcode == WcOpcode::recv_write_record) return take_record(wc);
  complete_request(wc);
}

void End::complete_request(const WorkCompletion& wc) {
  if (wc.wr_id < buffers_.size()) {
    Slot& slot = buffers_[wc.wr_id];
    const size_t length = scenario_.operations[side_][wc.wr_id].length();
    ledger_.completed(side_, wc.wr_id, wc.status, std::span(slot.memory).first(length));
    return release(slot);
  }
  --pending_;
  const bool silent = wc.status == WcStatus::retry_exceeded && ledger_.expects_silence();
  if (silent || (wc.status == WcStatus::peer_restarted && ledger_.expects_restart())) {
    restarted_ = true;
    return;
  }
  const bool flushed = wc.status == WcStatus::wr_flush_error && qp_->state() == QpState::error;
  const bool local = wc.opcode == WcOpcode::local_invalidate;  // its region may be gone already
  if (wc.status != WcStatus::success && !flushed && !local)
    violation("a later request failed with '" + std::string(to_string(wc.status)) + "'");
}

/// Receives are used in the order of posting. But where the peer began anew, its messages may come
/// before it is known that a message that it had begun is over, whose receive comes back then.
void End::check_order(const WorkCompletion& wc) {
  const auto used = std::ranges::find(receives_, wc.wr_id);
  if (used == receives_.end())
    return violation("receive " + std::to_string(wc.wr_id) + " was used again");
  const bool may_overtake = ledger_.restarted(other(side_)) && wc.byte_count != kProbeBytes;
  if (used != receives_.begin() && !may_overtake)
    violation("receive " + std::to_string(wc.wr_id) + " was used instead of " +
              std::to_string(receives_.front()));
  receives_.erase(used);
}

void End::take_receive(const WorkCompletion& wc) {
  check_order(wc);
  if (wc.status == WcStatus::wr_flush_error && qp_->state() == QpState::error) return;
  if (wc.status != WcStatus::success)
    return violation("a receive failed with '" + std::string(to_string(wc.status)) + "'");
  const std::span<std::byte> memory = receive_memory(wc.wr_id);
  if (wc.byte_count != kProbeBytes) ledger_.received(side_, memory.first(wc.byte_count));
  released_receives_[wc.wr_id % kMostReceives] = true;
  std::ranges::fill(memory, kReleased);
}

void End::take_record(const WorkCompletion& wc) {
  const auto written = [&](const Slot& slot) {
    return wc.tagged_offset == reinterpret_cast<uint64_t>(slot.memory.data());
  };
  const auto slot = std::ranges::find_if(targets_, written);
  if (wc.status != WcStatus::success || slot == targets_.end())
    return violation("a Write-Record was reported that nobody posted");
  const auto index = static_cast<size_t>(slot - targets_.begin());
  const size_t length = scenario_.operations[other(side_)][index].length();
  ledger_.recorded(side_, index, wc.validity.complete(), wc.byte_count,
                   std::span(slot->memory).first(length));
  release(*slot);
}

// --- At rest.

void End::check_untouched(std::span<const std::byte> memory, const char* what) {
  const auto touched = [](std::byte byte) { return byte != kReleased; };
  if (std::ranges::any_of(memory, touched))
    violation(std::string("the memory of ") + what + " was written after its report");
}

void End::check_at_rest() {
  for (const Slot& slot : buffers_)
    if (slot.released) check_untouched(slot.memory, "a request");
  for (const Slot& slot : targets_)
    if (slot.released) check_untouched(slot.memory, "a target");
  for (size_t i = 0; i < kMostReceives; ++i)
    if (released_receives_[i]) check_untouched(receive_memory(i), "a receive");
  if (!qp_->open_records().empty()) violation("a Write-Record is open");
  const QueuePairAttributes now = qp_->query();
  if (now.posted_sends != 0) violation("a request is still posted");
  if (now.posted_receives != receives_left())
    violation(std::to_string(receives_left()) + " receives should be posted, and " +
              std::to_string(now.posted_receives) + " are");
  for (const ReliablePeer& peer : qp_->peers())
    if (peer.in_flight != 0) violation("a datagram is still in flight");
}

// --- Probes.

void End::probe_send(const End& peer) {
  ++pending_;
  post_request({.wr_id = kOutside, .destination = peer.qp_->address(), .q_key = kQKey},
               probe_region_.sge(0, kProbeBytes));
}

void End::probe_read(const End& peer) {
  ++pending_;
  post_request({.wr_id = kOutside,
                .destination = peer.qp_->address(),
                .opcode = WrOpcode::rdma_read,
                .remote = {peer.probe_region_.rkey(), peer.probe_region_.base()}},
               probe_region_.sge(0, kProbeBytes));
}

}  // namespace diwarp::explore
