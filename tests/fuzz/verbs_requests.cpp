// SPDX-License-Identifier: Apache-2.0
// What is posted in a run, and what completes.
#include <algorithm>
#include <utility>

#include "fuzz/verbs_calls.h"
#include "fuzz/verbs_scene.h"

namespace diwarp::fuzz {
namespace {

constexpr size_t kAtomicBytes = 8;

bool is_receive(WcOpcode opcode) {
  return opcode == WcOpcode::recv || opcode == WcOpcode::recv_immediate;
}

}  // namespace

// --- Receives.

std::optional<ReceiveWorkRequest> VerbsScene::receive_into(VerbsDomain& domain, uint64_t wr_id) {
  const size_t room = length();
  const std::optional<size_t> at = domain.take(room);
  if (!at) return std::nullopt;
  const Sge sge = domain.sge(*at, room);
  return ReceiveWorkRequest{.wr_id = wr_id, .sges = sge};
}

void VerbsScene::note_receive(VerbsLedger& ledger, const std::shared_ptr<VerbsDomain>& domain,
                              const ReceiveWorkRequest& request) {
  const Sge& sge = request.sges[0];
  const auto at =
      static_cast<size_t>(static_cast<std::byte*>(sge.address) - domain->memory.bytes().data());
  ledger.open.posted({.wr_id = request.wr_id, .opcode = WcOpcode::recv, .room = sge.length});
  ledger.sinks[request.wr_id] = {domain, at};
}

void VerbsScene::post_receive(VerbsQp& to) {
  const uint64_t number = to.ledgers + 1;
  const auto request = receive_into(*to.domain, next_id(number));
  if (request && !to.qp->post_recv(*request)) note_receive(*ledgers_[number], to.domain, *request);
}

void VerbsScene::post_receive(VerbsSrq& to) {
  const auto request = receive_into(*to.domain, next_id(to.ledger_number));
  if (request && !to.srq.post_recv(*request)) note_receive(*to.ledger, to.domain, *request);
  if (in_.below(8) == 0) {
    try {
      to.srq.set_limit(in_.below(20));
    } catch (const Error&) {  // more than it holds
    }
  }
}

// --- Sends.

SendFlags VerbsScene::flags() {
  const unsigned drawn = in_.u8();
  return static_cast<SendFlags>((drawn & 0x1BU) ^ ((drawn & 0xE0U) == 0xE0U ? 4U : 0U) ^ 1U);
}

size_t VerbsScene::length() {
  constexpr std::array<size_t, 8> kLengths{8, 64, 0, 300, 1500, 4000, 16, 1};
  return kLengths[in_.below(kLengths.size())];
}

/// Where a request over datagrams goes; of an RC queue pair, its peer. Null where it cannot arrive.
VerbsQp* VerbsScene::destination(VerbsQp& from, Address& address) {
  if (from.type == QpType::rc) {
    const auto peer =
        std::ranges::find_if(qps_, [&](const auto& qp) { return qp && qp->serial == from.peer; });
    return peer == qps_.end() ? nullptr : peer->get();
  }
  VerbsQp* const to = pick(qps_);
  if (to == nullptr) {
    address = in_.flag() ? Address::parse("10.0.0.9", 7) : Address();
    return nullptr;
  }
  address = to->qp->address();
  return to;
}

/// Memory that a peer may name: `expected` is what a Read of it brings, if that never changes.
RemoteMemory VerbsScene::remote(size_t bytes, std::optional<std::vector<std::byte>>* expected) {
  const unsigned how = in_.u8();
  VerbsRegion* const region = regions_[how % kSlots].get();
  if (region == nullptr || (how & 0x40U) != 0) return {any_stag(), kVerbsBase + (how & 7U)};
  const size_t at = (how >> 2U & 15U) * 8;
  if (expected != nullptr && !region->writable() && at + bytes <= region->memory.size()) {
    const auto source = region->memory.bytes().subspan(at, bytes);
    *expected = std::vector<std::byte>(source.begin(), source.end());
  }
  return {region->mr->rkey(), kVerbsBase + at};
}

STag VerbsScene::any_stag() {
  const size_t slot = in_.below(kSlots);
  switch (in_.below(4)) {
    case 0:
      return windows_[slot] ? windows_[slot]->stag() : 1;
    case 1:
      return fast_[slot] ? fast_[slot]->stag() : 2;
    case 2:
      return domains_[slot] ? domains_[slot]->key : 3;
    default:
      return regions_[slot] ? regions_[slot]->mr->rkey() : 4;
  }
}

void VerbsScene::post_send(VerbsQp& from) {
  const unsigned drawn = in_.below(16);
  switch (drawn) {
    case 8:
      return post_write(from, WrOpcode::rdma_write);
    case 9:
      return post_write(from, WrOpcode::write_record);
    case 10:
    case 11:
      return post_read(from, WrOpcode::rdma_read);
    case 12:
      return post_read(from, WrOpcode::rdma_read_with_invalidate);
    case 13:
      return post_atomic(from, static_cast<WrOpcode>(6 + in_.below(3)));
    case 14:
      return post_local(from);
    case 15:
      return post_message(from, WrOpcode::immediate);
    case 7:
      return post_message(from, WrOpcode::send_with_invalidate);
    default:
      return post_message(from, WrOpcode::send);
  }
}

/// A Send, whose bytes tell its number, or immediate data in a message of their own.
void VerbsScene::post_message(VerbsQp& from, WrOpcode opcode) {
  SendWorkRequest request{.wr_id = next_id(from.ledgers), .flags = flags(), .opcode = opcode};
  const size_t bytes = opcode == WrOpcode::immediate ? 0 : length();
  const std::optional<size_t> at = from.domain->take(bytes);
  if (!at) return;
  const VerbsQp* const to = destination(from, request.destination);
  if (opcode != WrOpcode::immediate) {
    messages_.write(from.domain->memory.bytes().subspan(*at, bytes));
    request.sges = from.domain->sge(*at, bytes);
  }
  if (opcode == WrOpcode::send_with_invalidate) request.invalidate_stag = any_stag();
  if (opcode == WrOpcode::immediate) request.immediate = last_id_;
  if (!post(from, request) || opcode == WrOpcode::immediate) return;
  messages_.confirm({from.serial, to == nullptr ? 0 : key_of(*to), from.type != QpType::ud});
}

void VerbsScene::post_write(VerbsQp& from, WrOpcode opcode) {
  SendWorkRequest request{.wr_id = next_id(from.ledgers), .flags = flags(), .opcode = opcode};
  const size_t bytes = length();
  const std::optional<size_t> at = from.domain->take(bytes);
  if (!at) return;
  destination(from, request.destination);
  request.sges = from.domain->sge(*at, bytes);
  request.remote = remote(bytes, nullptr);
  post(from, request);
}

void VerbsScene::post_read(VerbsQp& from, WrOpcode opcode) {
  SendWorkRequest request{.wr_id = next_id(from.ledgers), .flags = flags(), .opcode = opcode};
  const size_t bytes = length();
  const std::optional<size_t> at = from.domain->take(bytes);
  if (!at) return;
  destination(from, request.destination);
  VerbsSink sink{from.domain, *at};
  request.remote = remote(bytes, &sink.expected);
  request.sges = from.domain->sge(*at, bytes);
  post(from, request, std::move(sink));
}

void VerbsScene::post_atomic(VerbsQp& from, WrOpcode opcode) {
  SendWorkRequest request{.wr_id = next_id(from.ledgers), .flags = flags(), .opcode = opcode};
  const std::optional<size_t> at = from.domain->take(kAtomicBytes);
  if (!at) return;
  request.sges = from.domain->sge(*at, kAtomicBytes);
  request.remote = remote(kAtomicBytes, nullptr);
  request.atomic.operand = in_.u8();
  post(from, request);
}

/// Binds, registers or invalidates: of what any domain has.
void VerbsScene::post_local(VerbsQp& from) {
  const unsigned how = in_.u8();
  SendWorkRequest request{.wr_id = next_id(from.ledgers), .flags = flags()};
  const size_t slot = how >> 2U & 3U;
  VerbsRegion* const region = regions_[how >> 4U & 3U].get();
  if (region == nullptr) return;
  const auto memory = region->memory.bytes();
  request.binding = {.stag = any_stag(),
                     .region = region->mr->rkey(),
                     .address = memory.data(),
                     .length = memory.size() >> (how & 1U),
                     .access = Access::remote_read,
                     .base = kVerbsBase};
  if ((how & 3U) == 0) {
    request.opcode = WrOpcode::local_invalidate;
    request.invalidate_stag = any_stag();
  } else if ((how & 3U) == 1) {
    request.opcode = WrOpcode::bind_window;
    if (windows_[slot]) request.binding.stag = windows_[slot]->stag() ^ (how >> 6U);
    if ((how & 0x80U) != 0 && region->writable())
      request.binding.access = Access::remote_read | Access::remote_write;
  } else {
    request.opcode = WrOpcode::register_memory;
    if (fast_[slot]) request.binding.stag = fast_[slot]->stag() ^ (how >> 6U);
    request.binding.address = registered_.bytes().data();
    request.binding.length = (how & 0x80U) != 0 ? registered_.size() : 64;
  }
  post(from, request);
}

/// Up to three Sends at once.
void VerbsScene::post_batch(VerbsQp& from) {
  std::vector<SendWorkRequest> requests;
  const size_t wanted = 1 + in_.below(3), bytes = 1 + in_.below(7);  // too short to have a number
  const SendFlags with = flags();
  while (requests.size() < wanted) {
    const std::optional<size_t> at = from.domain->take(bytes);
    if (!at) break;
    SendWorkRequest request{.wr_id = next_id(from.ledgers), .flags = with};
    destination(from, request.destination);
    request.sges = from.domain->sge(*at, bytes);
    requests.push_back(request);
  }
  size_t posted = 0;
  const std::error_code error = from.qp->post_sends(requests, posted);
  require(error ? posted < requests.size() : posted == requests.size(),
          "a batch says otherwise what was posted");
  for (size_t i = 0; i < posted; ++i) note_send(from, requests[i], {});
}

bool VerbsScene::post(VerbsQp& from, const SendWorkRequest& request,
                      std::optional<VerbsSink> sink) {
  if (from.qp->post_send(request)) return false;
  note_send(from, request, std::move(sink));
  return true;
}

void VerbsScene::note_send(VerbsQp& from, const SendWorkRequest& request,
                           std::optional<VerbsSink> sink) {
  VerbsLedger& ledger = *ledgers_[from.ledgers];
  const bool silent = !from.signal_all && !has(request.flags, SendFlags::signaled);
  ledger.open.posted(
      {.wr_id = request.wr_id, .opcode = completes_as(request.opcode), .silent = silent});
  if (sink) ledger.sinks[request.wr_id] = std::move(*sink);
}

// --- Completions.

void VerbsScene::poll_all() {
  size_t got = 1;
  while (got != 0) {
    got = 0;
    for (const auto& cq : cqs_)
      if (cq) got += poll(*cq, SIZE_MAX);
  }
}

/// Returns how many there were.
size_t VerbsScene::poll(VerbsCq& cq, size_t most) {
  std::array<WorkCompletion, 4> batch;
  size_t all = 0;
  while (all < most) {
    const size_t got = cq.cq.poll(std::span(batch).first(std::min(most - all, batch.size())));
    if (got == 0) break;
    for (size_t i = 0; i < got; ++i) take(cq.device, batch[i]);
    all += got;
  }
  return all;
}

void VerbsScene::take(unsigned device, const WorkCompletion& completion) {
  if (completion.opcode == WcOpcode::recv_write_record) return;
  const uint64_t number = completion.wr_id >> 32U;
  require(number < ledgers_.size(), "a completion of nothing that was posted");
  VerbsLedger& ledger = *ledgers_[number];
  ledger.ordered ? ledger.open.completed(completion) : ledger.open.completed_anywhere(completion);
  const auto sink = ledger.sinks.extract(completion.wr_id);
  if (sink && completion.status == WcStatus::success) check_sink(device, sink.mapped(), completion);
}

void VerbsScene::check_sink(unsigned device, const VerbsSink& sink,
                            const WorkCompletion& completion) {
  const auto memory = sink.domain->memory.bytes().subspan(sink.at);
  if (sink.expected)
    require(std::ranges::equal(*sink.expected, memory.first(sink.expected->size())),
            "a Read brought other bytes than the memory's");
  if (!is_receive(completion.opcode) || completion.opcode == WcOpcode::recv_immediate) return;
  const uint64_t to = key_of(device, completion.qp_number);
  require(keys_.contains(to), "a completion names no queue pair");
  messages_.delivered(to, memory.first(completion.byte_count));
}

/// Arms a completion queue, or takes an event. No more come than were asked for.
void VerbsScene::listen_to_events() {
  const unsigned how = in_.u8();
  const size_t device = how % kDevices;
  if ((how & 0x80U) != 0) {
    VerbsCq* const cq = pick(cqs_);
    if (cq != nullptr) cq->cq.arm((how & 0x40U) != 0), ++armed_;
  } else if ((how & 0x40U) != 0) {
    events_[device].get_event(Duration::zero());
  } else if (channels_[device].get_event(Duration::zero())) {
    require(armed_ != 0, "a notification came that nobody asked for");
    --armed_;
  }
}

}  // namespace diwarp::fuzz
