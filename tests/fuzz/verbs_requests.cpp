// SPDX-License-Identifier: Apache-2.0
#include "fuzz/verbs_requests.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fuzz/verbs_calls.h"

namespace diwarp::fuzz {
namespace {

constexpr size_t kAtomicBytes = 8;

}  // namespace

// --- Receives.

std::optional<ReceiveWorkRequest> VerbsRequests::receive_into(VerbsDomain& domain, uint64_t wr_id) {
  const size_t room = length();
  const std::optional<size_t> at = domain.take(room);
  if (!at) return std::nullopt;
  const Sge sge = domain.sge(*at, room);
  return ReceiveWorkRequest{.wr_id = wr_id, .sges = sge};
}

void VerbsRequests::note_receive(VerbsLedger& ledger, const std::shared_ptr<VerbsDomain>& domain,
                                 const ReceiveWorkRequest& request) {
  const Sge& sge = request.sges[0];
  const auto at =
      static_cast<size_t>(static_cast<std::byte*>(sge.address) - domain->memory.bytes().data());
  ledger.open.posted({.wr_id = request.wr_id, .opcode = WcOpcode::recv, .room = sge.length});
  ledger.sinks[request.wr_id] = {domain, at};
}

void VerbsRequests::post_receive(VerbsQp& to) {
  const uint64_t number = to.ledgers + 1;
  const auto request = receive_into(*to.domain, run_.posted.next_id(number));
  if (request && !to.qp->post_recv(*request))
    note_receive(*run_.posted.ledgers[number], to.domain, *request);
}

void VerbsRequests::post_receive(VerbsSrq& to) {
  const auto request = receive_into(*to.domain, run_.posted.next_id(to.ledger_number));
  if (request && !to.srq.post_recv(*request)) note_receive(*to.ledger, to.domain, *request);
  if (run_.in.below(8) == 0) {
    try {
      to.srq.set_limit(run_.in.below(20));
    } catch (const Error&) {  // more than it holds
    }
  }
}

// --- Sends.

SendFlags VerbsRequests::flags() {
  const unsigned drawn = run_.in.u8();
  return static_cast<SendFlags>((drawn & 0x1BU) ^ ((drawn & 0xE0U) == 0xE0U ? 4U : 0U) ^ 1U);
}

size_t VerbsRequests::length() {
  constexpr std::array<size_t, 8> kLengths{8, 64, 0, 300, 1500, 4000, 16, 1};
  return kLengths[run_.in.below(kLengths.size())];
}

/// Where a request over datagrams goes; of an RC queue pair, its peer. Null where it cannot arrive.
VerbsQp* VerbsRequests::destination(VerbsQp& from, Address& address) {
  if (from.type == QpType::rc) {
    const auto peer = std::ranges::find_if(
        run_.slots.qps, [&](const auto& qp) { return qp && qp->serial == from.peer; });
    return peer == run_.slots.qps.end() ? nullptr : peer->get();
  }
  VerbsQp* const to = run_.pick(run_.slots.qps);
  if (to == nullptr) {
    address = run_.in.flag() ? Address::parse("10.0.0.9", 7) : Address();
    return nullptr;
  }
  address = to->qp->address();
  return to;
}

/// Memory that a peer may name: `expected` is what a Read of it brings, if that never changes.
RemoteMemory VerbsRequests::remote(size_t bytes, std::optional<std::vector<std::byte>>* expected) {
  const unsigned how = run_.in.u8();
  VerbsRegion* const region = run_.slots.regions[how % VerbsSlots::kSlots].get();
  if (region == nullptr || (how & 0x40U) != 0) return {any_stag(), kVerbsBase + (how & 7U)};
  const size_t at = (how >> 2U & 15U) * 8;
  if (expected != nullptr && !region->writable() && at + bytes <= region->memory.size()) {
    const auto source = region->memory.bytes().subspan(at, bytes);
    *expected = std::vector<std::byte>(source.begin(), source.end());
  }
  return {region->mr->rkey(), kVerbsBase + at};
}

STag VerbsRequests::any_stag() {
  const size_t slot = run_.in.below(VerbsSlots::kSlots);
  switch (run_.in.below(4)) {
    case 0:
      return run_.slots.windows[slot] ? run_.slots.windows[slot]->stag() : 1;
    case 1:
      return run_.slots.fast[slot] ? run_.slots.fast[slot]->stag() : 2;
    case 2:
      return run_.slots.domains[slot] ? run_.slots.domains[slot]->key : 3;
    default:
      return run_.slots.regions[slot] ? run_.slots.regions[slot]->mr->rkey() : 4;
  }
}

void VerbsRequests::post_send(VerbsQp& from) {
  const unsigned drawn = run_.in.below(16);
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
      return post_atomic(from, static_cast<WrOpcode>(6 + run_.in.below(3)));
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
void VerbsRequests::post_message(VerbsQp& from, WrOpcode opcode) {
  SendWorkRequest request{
      .wr_id = run_.posted.next_id(from.ledgers), .flags = flags(), .opcode = opcode};
  const size_t bytes = opcode == WrOpcode::immediate ? 0 : length();
  const std::optional<size_t> at = from.domain->take(bytes);
  if (!at) return;
  const VerbsQp* const to = destination(from, request.destination);
  if (opcode != WrOpcode::immediate) {
    run_.posted.messages.write(from.domain->memory.bytes().subspan(*at, bytes));
    request.sges = from.domain->sge(*at, bytes);
  }
  if (opcode == WrOpcode::send_with_invalidate) request.invalidate_stag = any_stag();
  if (opcode == WrOpcode::immediate) request.immediate = run_.posted.last_id;
  if (!post(from, request) || opcode == WrOpcode::immediate) return;
  run_.posted.messages.confirm(
      {from.serial, to == nullptr ? 0 : key_of(*to), from.type != QpType::ud});
}

void VerbsRequests::post_write(VerbsQp& from, WrOpcode opcode) {
  SendWorkRequest request{
      .wr_id = run_.posted.next_id(from.ledgers), .flags = flags(), .opcode = opcode};
  const size_t bytes = length();
  const std::optional<size_t> at = from.domain->take(bytes);
  if (!at) return;
  destination(from, request.destination);
  request.sges = from.domain->sge(*at, bytes);
  request.remote = remote(bytes, nullptr);
  post(from, request);
}

void VerbsRequests::post_read(VerbsQp& from, WrOpcode opcode) {
  SendWorkRequest request{
      .wr_id = run_.posted.next_id(from.ledgers), .flags = flags(), .opcode = opcode};
  const size_t bytes = length();
  const std::optional<size_t> at = from.domain->take(bytes);
  if (!at) return;
  destination(from, request.destination);
  VerbsSink sink{from.domain, *at};
  request.remote = remote(bytes, &sink.expected);
  request.sges = from.domain->sge(*at, bytes);
  post(from, request, std::move(sink));
}

void VerbsRequests::post_atomic(VerbsQp& from, WrOpcode opcode) {
  SendWorkRequest request{
      .wr_id = run_.posted.next_id(from.ledgers), .flags = flags(), .opcode = opcode};
  const std::optional<size_t> at = from.domain->take(kAtomicBytes);
  if (!at) return;
  request.sges = from.domain->sge(*at, kAtomicBytes);
  request.remote = remote(kAtomicBytes, nullptr);
  request.atomic.operand = run_.in.u8();
  post(from, request);
}

/// Binds, registers or invalidates: of what any domain has.
void VerbsRequests::post_local(VerbsQp& from) {
  const unsigned how = run_.in.u8();
  SendWorkRequest request{.wr_id = run_.posted.next_id(from.ledgers), .flags = flags()};
  const size_t slot = how >> 2U & 3U;
  VerbsRegion* const region = run_.slots.regions[how >> 4U & 3U].get();
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
    if (run_.slots.windows[slot])
      request.binding.stag = run_.slots.windows[slot]->stag() ^ (how >> 6U);
    if ((how & 0x80U) != 0 && region->writable())
      request.binding.access = Access::remote_read | Access::remote_write;
  } else {
    request.opcode = WrOpcode::register_memory;
    if (run_.slots.fast[slot]) request.binding.stag = run_.slots.fast[slot]->stag() ^ (how >> 6U);
    request.binding.address = registered_.bytes().data();
    request.binding.length = (how & 0x80U) != 0 ? registered_.size() : 64;
  }
  post(from, request);
}

void VerbsRequests::post_batch(VerbsQp& from) {
  std::vector<SendWorkRequest> requests;
  const size_t wanted = 1 + run_.in.below(3),
               bytes = 1 + run_.in.below(7);  // too short to have a number
  const SendFlags with = flags();
  while (requests.size() < wanted) {
    const std::optional<size_t> at = from.domain->take(bytes);
    if (!at) break;
    SendWorkRequest request{.wr_id = run_.posted.next_id(from.ledgers), .flags = with};
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

bool VerbsRequests::post(VerbsQp& from, const SendWorkRequest& request,
                         std::optional<VerbsSink> sink) {
  if (from.qp->post_send(request)) return false;
  note_send(from, request, std::move(sink));
  return true;
}

void VerbsRequests::note_send(VerbsQp& from, const SendWorkRequest& request,
                              std::optional<VerbsSink> sink) {
  VerbsLedger& ledger = *run_.posted.ledgers[from.ledgers];
  const bool silent = !from.signal_all && !has(request.flags, SendFlags::signaled);
  ledger.open.posted(
      {.wr_id = request.wr_id, .opcode = completes_as(request.opcode), .silent = silent});
  if (sink) ledger.sinks[request.wr_id] = std::move(*sink);
}

}  // namespace diwarp::fuzz
