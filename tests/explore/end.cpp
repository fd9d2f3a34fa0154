// SPDX-License-Identifier: Apache-2.0
#include "end.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <stdexcept>
#include <vector>

namespace diwarp::explore {

namespace {

using namespace std::chrono_literals;

constexpr uint32_t kQKey = 7;
constexpr size_t kProbeBytes = EndMemory::kProbeBytes;
/// wr_ids of requests outside the scenario.
constexpr uint64_t kOutside = 1000;

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
      memory_(pd_, scenario, side) {
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
  EndMemory::Slot& slot = memory_.buffers()[index];
  const EndMemory::Slot& target = peer.memory_.targets()[index];
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

/// A receive may be used at once, and what is done then may fail.
void End::post_receives(size_t count) {
  for (size_t i = 0; i < count && !has_failed(); ++i) {
    const size_t index = posted_receives_++;
    receives_.push_back(index);
    const Sge sge = memory_.post_receive(index, scenario_.receive_bytes());
    check_posted(qp_->post_recv({.wr_id = index, .sges = {&sge, 1}}));
  }
}

void End::deregister_target(size_t operation) {
  EndMemory::deregister(memory_.targets()[operation]);
}

void End::invalidate_target(size_t operation) {
  const EndMemory::Slot& slot = memory_.targets()[operation];
  if (!slot.region) return;
  ++pending_;
  post_request({.wr_id = kOutside,
                .opcode = WrOpcode::local_invalidate,
                .invalidate_stag = slot.region->rkey()},
               {});
}

void End::deregister_buffer(size_t operation) {
  EndMemory::deregister(memory_.buffers()[operation]);
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
  if (wc.wr_id < memory_.buffers().size()) {
    EndMemory::Slot& slot = memory_.buffers()[wc.wr_id];
    const size_t length = scenario_.operations[side_][wc.wr_id].length();
    ledger_.completed(side_, wc.wr_id, wc.status, std::span(slot.memory).first(length));
    return EndMemory::release(slot);
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
  const std::span<std::byte> memory = memory_.receive(wc.wr_id);
  if (wc.byte_count != kProbeBytes) ledger_.received(side_, memory.first(wc.byte_count));
  memory_.release_receive(wc.wr_id);
}

void End::take_record(const WorkCompletion& wc) {
  const auto written = [&](const EndMemory::Slot& slot) {
    return wc.tagged_offset == reinterpret_cast<uint64_t>(slot.memory.data());
  };
  std::vector<EndMemory::Slot>& targets = memory_.targets();
  const auto slot = std::ranges::find_if(targets, written);
  if (wc.status != WcStatus::success || slot == targets.end())
    return violation("a Write-Record was reported that nobody posted");
  const auto index = static_cast<size_t>(slot - targets.begin());
  const size_t length = scenario_.operations[other(side_)][index].length();
  ledger_.recorded(side_, index, wc.validity.complete(), wc.byte_count,
                   std::span(slot->memory).first(length));
  EndMemory::release(*slot);
}

// --- At rest.

void End::check_at_rest() {
  for (const char* what : memory_.written_since_release())
    violation(std::string("the memory of ") + what + " was written after its report");
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
               memory_.probe_region().sge(0, kProbeBytes));
}

void End::probe_read(const End& peer) {
  ++pending_;
  post_request({.wr_id = kOutside,
                .destination = peer.qp_->address(),
                .opcode = WrOpcode::rdma_read,
                .remote = {peer.memory_.probe_region().rkey(), peer.memory_.probe_region().base()}},
               memory_.probe_region().sge(0, kProbeBytes));
}

}  // namespace diwarp::explore
