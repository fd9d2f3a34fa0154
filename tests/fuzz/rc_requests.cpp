// SPDX-License-Identifier: Apache-2.0
#include "fuzz/rc_requests.h"

#include <algorithm>
#include <array>

#include "fuzz/verbs_calls.h"

namespace diwarp::fuzz {
namespace {

constexpr size_t kReceives = 8;  // of the inbox: receives that are not polled yet, at most
constexpr size_t kInboxSlot = 16384;
constexpr size_t kSinkSlot = 8192;

bool is_send(WrOpcode opcode) {
  return opcode == WrOpcode::send || opcode == WrOpcode::send_with_invalidate;
}
bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::fetch_add || opcode == WrOpcode::compare_swap ||
         opcode == WrOpcode::swap;
}
bool is_read(WrOpcode opcode) {
  return opcode == WrOpcode::rdma_read || opcode == WrOpcode::rdma_read_with_invalidate;
}

uint64_t total(const SgeList& sges) {
  uint64_t bytes = 0;
  for (const Sge& sge : sges) bytes += sge.length;
  return bytes;
}

}  // namespace

/// In one or two pieces of a slot, which no other receive has.
void RcRequests::post_receive(Input& in, QueuePair& qp, std::optional<SharedReceiveQueue>& srq) {
  const unsigned how = in.u8();
  if (receives_.size() == kReceives) return;
  const size_t at = (posted_receives_ % kReceives) * kInboxSlot;
  const std::array<uint32_t, 4> lengths{256, 16384, 64, 1};
  const uint32_t room = lengths[how & 3U];
  const uint32_t first = (how & 4U) != 0 ? room / 3 : room;
  const STag key = (how & 0xF8U) == 0xF8U ? regions_.closed_key() : regions_.keys().inbox;
  std::byte* const begin = memory_.inbox.bytes().data() + at;
  const std::array sges{Sge{begin, first, key}, Sge{begin + first, room - first, key}};
  const ReceiveWorkRequest request{.wr_id = next_id_,
                                   .sges = {sges.data(), first < room ? 2U : 1U}};
  if (srq ? srq->post_recv(request) : qp.post_recv(request)) return;
  ++posted_receives_;
  std::fill_n(memory_.receives.begin() + static_cast<ptrdiff_t>(at), room, true);
  receives_.posted({.wr_id = next_id_++, .opcode = WcOpcode::recv, .room = room, .at = at});
}

void RcRequests::post_send(Input& in, QueuePair& qp) {
  constexpr std::array kOpcodes{WrOpcode::send,
                                WrOpcode::send_with_invalidate,
                                WrOpcode::rdma_write,
                                WrOpcode::rdma_read,
                                WrOpcode::rdma_read_with_invalidate,
                                WrOpcode::immediate,
                                WrOpcode::fetch_add,
                                WrOpcode::compare_swap,
                                WrOpcode::swap,
                                WrOpcode::write_record};
  post(request_from(in, kOpcodes[in.below(kOpcodes.size())]), qp);
}

/// Of the outbox, or into the sink or the results; wrong in some way now and then.
SendWorkRequest RcRequests::request_from(Input& in, WrOpcode opcode) {
  const unsigned how = in.u8();
  const std::array<uint32_t, 4> lengths{64, 0, 8000, 1500};
  const auto length = is_atomic(opcode) ? 8U : lengths[how & 3U];
  const size_t at = is_atomic(opcode) ? (how >> 2U & 3U) * 8U : (how >> 2U & 3U) * kSinkSlot;
  GuardedMemory& memory = is_atomic(opcode) ? memory_.results
                          : is_read(opcode) ? memory_.sink
                                            : memory_.outbox;
  STag key = is_atomic(opcode) ? regions_.keys().results
             : is_read(opcode) ? regions_.keys().sink
                               : regions_.keys().outbox;
  if ((how & 0xF0U) == 0xF0U) key = regions_.closed_key() ^ (how & 1U);
  SendWorkRequest request{.wr_id = next_id_, .opcode = opcode};
  if (opcode != WrOpcode::immediate) request.sges = Sge{memory.bytes().data() + at, length, key};
  if (is_send(opcode) && (how & 0x30U) == 0x10U)
    request.sges = {Sge{memory.bytes().data() + at, length / 2, key},
                    Sge{memory.bytes().data() + at + length / 2, length - length / 2, key}};
  request.flags = static_cast<SendFlags>((how >> 4U & 1U) | (how >> 5U & 1U ? 8U : 0U) |
                                         ((how & 0xC0U) == 0x40U ? 4U : 0U) | (how >> 7U) * 2U);
  request.remote = {77, opcode == WrOpcode::rdma_write ? kRemoteBase + at : kBase};
  request.invalidate_stag = 77;
  if (opcode == WrOpcode::immediate) request.immediate = how;
  return request;
}

void RcRequests::post(SendWorkRequest request, QueuePair& qp) {
  if (qp.post_send(request)) return;
  const uint64_t length = total(request.sges);
  const auto* const base = memory_.sink.bytes().data();
  const bool read = is_read(request.opcode) && !request.sges.empty();
  const size_t at =
      read ? static_cast<size_t>(static_cast<std::byte*>(request.sges[0].address) - base) : 0;
  if (is_send(request.opcode))
    output_.expect_send(static_cast<size_t>(static_cast<std::byte*>(request.sges[0].address) -
                                            memory_.outbox.bytes().data()),
                        length);
  const bool silent = !signal_all_ && !has(request.flags, SendFlags::signaled);
  sends_.posted({.wr_id = next_id_++,
                 .opcode = completes_as(request.opcode),
                 .silent = silent,
                 .room = read ? length : 0,
                 .at = at});
}

void RcRequests::post_local(Input& in, QueuePair& qp) {
  const unsigned how = in.u8();
  SendWorkRequest request{.wr_id = next_id_};
  if ((how & 3U) == 0) {
    request.opcode = WrOpcode::local_invalidate;
    request.invalidate_stag = regions_.stag(how >> 2U);
  } else if ((how & 1U) != 0) {
    request.opcode = WrOpcode::bind_window;
    request.binding = regions_.window_binding(how);
  } else {
    request.opcode = WrOpcode::register_memory;
    request.binding = regions_.fast_binding(how);
  }
  post(request, qp);
}

void RcRequests::dropped(bool shared) {
  sends_.dropped();
  if (!shared) receives_.dropped();
}

void RcRequests::check_all_completed(bool shared) const {
  sends_.check_all_completed();
  if (!shared) receives_.check_all_completed();
}

}  // namespace diwarp::fuzz
