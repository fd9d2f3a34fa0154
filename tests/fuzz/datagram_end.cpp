// SPDX-License-Identifier: Apache-2.0
#include "fuzz/datagram_end.h"

#include <algorithm>
#include <array>
#include <span>

namespace diwarp::fuzz {

namespace {

QueuePairInit with_queues(QueuePairInit options, const CompletionQueue& send_cq,
                          const CompletionQueue& recv_cq) {
  options.send_cq = send_cq;
  options.recv_cq = recv_cq;
  return options;
}

}  // namespace

DatagramEnd::DatagramEnd(const Device& device, const QueuePairInit& options, uint8_t seed)
    : options_(options),
      pd_(device),
      other_pd_(device),
      send_cq_(device, 64),
      recv_cq_(device, 64),
      memory_(pd_, other_pd_),
      messages_(seed) {
  qp_.emplace(pd_, with_queues(options, send_cq_, recv_cq_));
}

// --- Requests.

void DatagramEnd::post_receive(size_t length) {
  DatagramRegion& receives = memory_.receives();
  const auto slot = receives.free_slot();
  if (!slot || !receives.region) return;
  const Sge sge = receives.region->sge(*slot * kSlotBytes, length);
  if (!qp_->post_recv({.wr_id = *slot, .sges = {&sge, 1}})) receives.used[*slot] = true;
}

SendWorkRequest DatagramEnd::request(const Address& to, WrOpcode opcode) {
  return {.wr_id = next_id_++, .destination = to, .opcode = opcode};
}

void DatagramEnd::keep(const SendWorkRequest& request, const Request& kept) {
  // A posted request may complete at once, but is polled for later.
  if (qp_->post_send(request)) return;
  requests_.emplace(request.wr_id, kept);
  if (kept.region != nullptr) kept.region->used[kept.slot] = true;
}

void DatagramEnd::post(SendWorkRequest request, DatagramRegion& from, size_t length) {
  const auto slot = from.free_slot();
  if (!slot || !from.region) return;
  const Sge sge = from.region->sge(*slot * kSlotBytes, length);
  if (&from == &memory_.sends()) {
    const auto id = static_cast<uint32_t>(request.wr_id);
    std::ranges::copy(messages_.contents_of(id, length),
                      from.memory.bytes().begin() + static_cast<ptrdiff_t>(*slot * kSlotBytes));
    from.memory.accept(*slot * kSlotBytes, length);
    if (request.opcode != WrOpcode::write_record) messages_.sent(id, length, request.destination);
  }
  request.sges = {&sge, 1};
  keep(request, {&from, *slot});
}

void DatagramEnd::post_send(const Address& to, uint32_t q_key, size_t length, STag invalidate) {
  SendWorkRequest made =
      request(to, invalidate == 0 ? WrOpcode::send : WrOpcode::send_with_invalidate);
  made.q_key = q_key;
  made.invalidate_stag = invalidate;
  post(made, memory_.sends(), std::max(length, sizeof(uint32_t)));
}

void DatagramEnd::post_record(const Address& to, RemoteMemory remote, size_t length) {
  SendWorkRequest made = request(to, WrOpcode::write_record);
  made.remote = remote;
  post(made, memory_.sends(), length);
}

void DatagramEnd::post_read(const Address& to, RemoteMemory remote, size_t length,
                            const ReadLimits& limits) {
  SendWorkRequest made = request(to, WrOpcode::rdma_read);
  made.remote = remote;
  made.limits = limits;
  post(made, memory_.reads(), length);
}

void DatagramEnd::post_invalidate(STag stag) {
  SendWorkRequest made = request({}, WrOpcode::local_invalidate);
  made.invalidate_stag = stag;
  keep(made, {nullptr, 0});
}

void DatagramEnd::stop() {
  if (qp_->state() == QpState::rts) qp_->modify(QpState::error);
}

void DatagramEnd::restart(DatagramEnd& peer) {
  take_receives(peer);
  take_completions();
  for (const QpState state : {QpState::reset, QpState::init, QpState::rts}) qp_->modify(state);
  requests_.clear();
  memory_.free_slots();
  restarted_ = true;
}

// --- Completions.

void DatagramEnd::take_receives(DatagramEnd& peer) {
  std::array<WorkCompletion, 16> batch;
  while (const size_t count = recv_cq_.poll(batch))
    for (const WorkCompletion& wc : std::span(batch).first(count)) {
      if (wc.opcode == WcOpcode::recv_write_record)
        check_record(wc);
      else
        take_receive(wc, peer);
    }
}

void DatagramEnd::take_receive(const WorkCompletion& wc, DatagramEnd& peer) {
  DatagramRegion& receives = memory_.receives();
  require(wc.wr_id < DatagramRegion::kSlots && receives.used[wc.wr_id],
          "A receive completed that was not posted");
  receives.used[wc.wr_id] = false;
  const size_t at = wc.wr_id * kSlotBytes;
  receives.memory.accept(at, kSlotBytes);
  if (wc.status != WcStatus::success) return;
  require(wc.byte_count <= kSlotBytes, "A message is longer than its receive");
  if (wc.source == peer.address())
    messages_.delivered(receives.memory.bytes().subspan(at, wc.byte_count), peer.messages_,
                        options_.type != QpType::ud);
}

void DatagramEnd::check_record(const WorkCompletion& wc) const {
  uint64_t end = 0;
  uint64_t bytes = 0;
  for (const auto& range : wc.validity.ranges()) {
    require(range.length != 0 && range.offset >= end, "The ranges of a map are out of order");
    end = range.offset + range.length;
    bytes += range.length;
  }
  require(wc.valid_bytes <= wc.byte_count, "More bytes are valid than a Write-Record has");
  if (options_.datagram.record_completion == RecordCompletion::per_segment) return;
  require(bytes == wc.valid_bytes && end <= wc.byte_count, "A map has other bytes than are valid");
}

void DatagramEnd::take_completions() {
  std::array<WorkCompletion, 16> batch;
  while (const size_t count = send_cq_.poll(batch))
    for (const WorkCompletion& wc : std::span(batch).first(count)) {
      const auto found = requests_.find(wc.wr_id);
      require(found != requests_.end(), "A request completed that was not posted");
      const auto [region, slot] = found->second;
      if (region != nullptr) region->used[slot] = false;
      if (region == &memory_.reads()) region->memory.accept(slot * kSlotBytes, kSlotBytes);
      if (wc.status == WcStatus::success) messages_.succeeded(static_cast<uint32_t>(wc.wr_id));
      requests_.erase(found);
    }
}

void DatagramEnd::check_over(const DatagramEnd& peer) const {
  require(requests_.empty(), "A request never completed");
  if (options_.type == QpType::ud || peer.restarted_) return;
  messages_.check_delivered(peer.messages_, peer.address());
}

}  // namespace diwarp::fuzz
