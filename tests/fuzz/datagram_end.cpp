// SPDX-License-Identifier: Apache-2.0
#include "fuzz/datagram_end.h"

#include <algorithm>
#include <cstring>

namespace diwarp::fuzz {

namespace {

constexpr Access kRemote = Access::local_write | Access::remote_write | Access::remote_read;

QueuePairInit with_queues(QueuePairInit options, const CompletionQueue& send_cq,
                          const CompletionQueue& recv_cq) {
  options.send_cq = send_cq;
  options.recv_cq = recv_cq;
  return options;
}

}  // namespace

DatagramEnd::DatagramEnd(const Device& device, const QueuePairInit& options, uint8_t seed)
    : seed_(seed),
      options_(options),
      pd_(device),
      other_pd_(device),
      send_cq_(device, 64),
      recv_cq_(device, 64),
      receives_{{kSlots * kSlotBytes, 11}, Access::local_write},
      sends_{{kSlots * kSlotBytes, 23}, Access::none},
      reads_{{kSlots * kSlotBytes, 37}, Access::local_write},
      open_{{1024, 41}, kRemote | Access::remote_invalidate, kBase},
      read_only_{{512, 53}, Access::remote_read, kBase},
      closed_{{512, 67}, Access::local_write, kBase},
      foreign_{{512, 71}, kRemote, kBase} {
  for (Registered* one : {&receives_, &sends_, &reads_, &open_, &read_only_, &closed_})
    register_region(*one, pd_);
  register_region(foreign_, other_pd_);
  qp_.emplace(pd_, with_queues(options, send_cq_, recv_cq_));
}

void DatagramEnd::register_region(Registered& registered, const ProtectionDomain& pd) {
  registered.region.emplace(pd, registered.memory.bytes(), registered.access, registered.base);
}

// --- Requests.

std::optional<size_t> DatagramEnd::free_slot(const Slots& slots) {
  const auto found = std::ranges::find(slots, false);
  if (found == slots.end()) return std::nullopt;
  return static_cast<size_t>(found - slots.begin());
}

/// The first bytes name the message.
std::vector<std::byte> DatagramEnd::contents_of(uint32_t id, size_t length) const {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(seed_ + id * 31 + i * 5);
  if (length >= sizeof id) std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

void DatagramEnd::post_receive(size_t length) {
  const auto slot = free_slot(receiving_);
  if (!slot || !receives_.region) return;
  const Sge sge = receives_.region->sge(*slot * kSlotBytes, length);
  if (!qp_->post_recv({.wr_id = *slot, .sges = {&sge, 1}})) receiving_[*slot] = true;
}

SendWorkRequest DatagramEnd::request(const Address& to, WrOpcode opcode) {
  return {.wr_id = next_id_++, .destination = to, .opcode = opcode};
}

void DatagramEnd::keep(const SendWorkRequest& request, const Request& kept) {
  // A posted request may complete at once, but is polled for later.
  if (qp_->post_send(request)) return;
  requests_.emplace(request.wr_id, kept);
  if (kept.slots != nullptr) (*kept.slots)[kept.slot] = true;
}

void DatagramEnd::post(SendWorkRequest request, Registered& from, Slots& slots, size_t length) {
  const auto slot = free_slot(slots);
  if (!slot || !from.region) return;
  const Sge sge = from.region->sge(*slot * kSlotBytes, length);
  if (&from == &sends_) {
    const auto id = static_cast<uint32_t>(request.wr_id);
    std::ranges::copy(contents_of(id, length),
                      from.memory.bytes().begin() + static_cast<ptrdiff_t>(*slot * kSlotBytes));
    from.memory.accept(*slot * kSlotBytes, length);
    if (request.opcode != WrOpcode::write_record)
      sent_.emplace(id, Sent{length, request.destination});
  }
  request.sges = {&sge, 1};
  keep(request, {&slots, *slot});
}

void DatagramEnd::post_send(const Address& to, uint32_t q_key, size_t length, STag invalidate) {
  SendWorkRequest made =
      request(to, invalidate == 0 ? WrOpcode::send : WrOpcode::send_with_invalidate);
  made.q_key = q_key;
  made.invalidate_stag = invalidate;
  post(made, sends_, sending_, std::max(length, sizeof(uint32_t)));
}

void DatagramEnd::post_record(const Address& to, RemoteMemory remote, size_t length) {
  SendWorkRequest made = request(to, WrOpcode::write_record);
  made.remote = remote;
  post(made, sends_, sending_, length);
}

void DatagramEnd::post_read(const Address& to, RemoteMemory remote, size_t length,
                            const ReadLimits& limits) {
  SendWorkRequest made = request(to, WrOpcode::rdma_read);
  made.remote = remote;
  made.limits = limits;
  post(made, reads_, reading_, length);
}

void DatagramEnd::post_invalidate(STag stag) {
  SendWorkRequest made = request({}, WrOpcode::local_invalidate);
  made.invalidate_stag = stag;
  keep(made, {nullptr, 0});
}

void DatagramEnd::toggle_region(uint8_t which) {
  Registered* const all[] = {&open_, &reads_, &receives_, &sends_};
  Registered& chosen = *all[which % 4];
  if (!chosen.region) return register_region(chosen, pd_);
  chosen.region.reset();
  chosen.memory.accept();
}

void DatagramEnd::restore_receives() {
  if (!receives_.region) register_region(receives_, pd_);
}

void DatagramEnd::stop() {
  if (qp_->state() == QpState::rts) qp_->modify(QpState::error);
}

void DatagramEnd::restart(DatagramEnd& peer) {
  take_receives(peer);
  take_completions();
  for (const QpState state : {QpState::reset, QpState::init, QpState::rts}) qp_->modify(state);
  requests_.clear();
  for (Slots* const slots : {&receiving_, &sending_, &reading_}) slots->fill(false);
  for (Registered* one : {&receives_, &reads_}) one->memory.accept();
  restarted_ = true;
}

STag DatagramEnd::stag(uint8_t which) const {
  const Registered* const all[] = {&open_,   &open_,    &open_,  &read_only_,
                                   &closed_, &foreign_, &reads_, &receives_};
  const Registered& chosen = *all[which % 8];
  return chosen.region ? chosen.region->rkey() : 1;
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
  require(wc.wr_id < kSlots && receiving_[wc.wr_id], "A receive completed that was not posted");
  receiving_[wc.wr_id] = false;
  const size_t at = wc.wr_id * kSlotBytes;
  receives_.memory.accept(at, kSlotBytes);
  if (wc.status != WcStatus::success) return;
  require(wc.byte_count <= kSlotBytes, "A message is longer than its receive");
  if (wc.source == peer.address())
    check_message(receives_.memory.bytes().subspan(at, wc.byte_count), peer);
}

void DatagramEnd::check_message(std::span<const std::byte> bytes, const DatagramEnd& peer) {
  uint32_t id = 0;
  if (bytes.size() >= sizeof id) std::memcpy(&id, bytes.data(), sizeof id);
  const auto sent = peer.sent_.find(id);
  require(sent != peer.sent_.end() && sent->second.length == bytes.size(),
          "A message came that the honest peer did not send");
  require(std::ranges::equal(bytes, peer.contents_of(id, bytes.size())),
          "A message of the honest peer is damaged");
  const bool in_order = delivered_.empty() || *delivered_.rbegin() < id;
  require(!delivered_.contains(id), "A message was delivered twice");
  require(in_order || options_.type == QpType::ud, "A message overtook another");
  delivered_.insert(id);
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
      const auto [slots, slot] = found->second;
      if (slots != nullptr) (*slots)[slot] = false;
      if (slots == &reading_) reads_.memory.accept(slot * kSlotBytes, kSlotBytes);
      if (wc.status == WcStatus::success) succeeded_.insert(static_cast<uint32_t>(wc.wr_id));
      requests_.erase(found);
    }
}

// --- Memory.

void DatagramEnd::check_slots(Registered& registered, const Slots& slots, const char* message) {
  registered.memory.check_guards();
  for (size_t i = 0; i < kSlots; ++i)
    if (!slots[i] || !registered.region)
      registered.memory.check(i * kSlotBytes, kSlotBytes, message);
}

/// Open memory may change while its STag is valid.
void DatagramEnd::check_open() {
  open_.memory.check_guards();
  const bool valid = open_.region && open_.region->valid();
  if (!valid && !open_.was_valid) open_.memory.check("Memory without a valid STag was written");
  open_.memory.accept();
  open_.was_valid = valid;
}

void DatagramEnd::check_memory() {
  check_slots(receives_, receiving_, "Memory of a receive that is not posted was written");
  check_slots(reads_, reading_, "Memory of a Read that is over was written");
  sends_.memory.check("Memory to be sent was written");
  read_only_.memory.check("Memory that is read only was written");
  closed_.memory.check("Memory without remote rights was written");
  foreign_.memory.check("Memory of another protection domain was written");
  for (const Registered* one : {&sends_, &read_only_, &closed_, &foreign_})
    one->memory.check_guards();
  check_open();
}

void DatagramEnd::check_over(const DatagramEnd& peer) const {
  require(requests_.empty(), "A request never completed");
  if (options_.type == QpType::ud || peer.restarted_) return;
  for (const uint32_t id : succeeded_) {
    const auto sent = sent_.find(id);
    const bool to_peer = sent != sent_.end() && sent->second.to == peer.address();
    require(!to_peer || peer.delivered_.contains(id), "A message succeeded that was not delivered");
  }
}

}  // namespace diwarp::fuzz
