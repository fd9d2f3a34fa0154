// SPDX-License-Identifier: Apache-2.0
#include "fuzz/rc_target.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fuzz/verbs_calls.h"
#include "rnic/device.h"
#include "verbs/handle_access.h"

namespace diwarp::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr int kMostSteps = 20000;
constexpr size_t kReceives = 8;  // of the inbox: receives that are not polled yet, at most
constexpr size_t kInboxSlot = 16384;
constexpr size_t kSinkSlot = 8192;
constexpr Access kOpen =
    Access::local_write | Access::remote_write | Access::remote_read | Access::remote_atomic;

Device open_device(const Clock& clock) {
  rnic::DeviceParts parts;
  parts.clock = &clock;
  const DeviceOptions options{.progress = Progress::manual, .io = IoBackend::syscall};
  return handle_of<Device>(
      std::make_shared<rnic::Device>(Address::parse("127.0.0.1"), options, parts));
}

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

RcTarget::RcTarget(Input& in, OnReceive on_receive, Known known)
    : on_receive_(std::move(on_receive)),
      known_(std::move(known)),
      device_(open_device(clock_)),
      send_cq_(device_, 1 + in.below(16)),
      recv_cq_(device_, 1 + in.below(16)) {
  const Access lender = Access::local_write | Access::window_bind;
  open_.emplace(pd_, memory_.open.bytes(), kOpen | Access::window_bind, kBase);
  read_only_.emplace(pd_, memory_.read_only.bytes(),
                     Access::remote_read | Access::remote_invalidate, kBase);
  closed_.emplace(pd_, memory_.closed.bytes(), Access::local_write, kBase);
  foreign_.emplace(other_pd_, memory_.foreign.bytes(), kOpen, kBase);
  bound_.emplace(pd_, memory_.bound.bytes(), lender, kBase);
  inbox_.emplace(pd_, memory_.inbox.bytes(), Access::local_write, kBase);
  sink_.emplace(pd_, memory_.sink.bytes(), Access::local_write, kSinkBase);
  results_.emplace(pd_, memory_.results.bytes(), Access::local_write, kBase);
  outbox_.emplace(pd_, memory_.outbox.bytes(), Access::none, kBase);
  window_.emplace(pd_);
  fast_.emplace(pd_, kLent);
  inbox_key_ = inbox_->lkey();
  sink_key_ = sink_->lkey();
  results_key_ = results_->lkey();
  outbox_key_ = outbox_->lkey();
  qp_.emplace(pd_, init_from(in));
}

QueuePairInit RcTarget::init_from(Input& in) {
  const unsigned how = in.u8();
  signal_all_ = (how & 1U) != 0;
  QueuePairInit init{.send_cq = send_cq_, .recv_cq = recv_cq_};
  init.capacity = {.max_send_wr = 8,
                   .max_recv_wr = 8,
                   .max_send_sge = 2,
                   .max_recv_sge = 2,
                   .max_inline_data = 64};
  init.signal_all = signal_all_;
  if ((how & 2U) != 0) init.stream.receive_not_ready = ReceiveNotReady::terminate;
  if ((how & 4U) != 0) init.stream.max_fpdu = 512;
  if ((how & 8U) != 0)
    srq_.emplace(pd_, SharedReceiveQueueOptions{.max_wr = 8, .max_sge = 2, .limit = how >> 6U});
  if (srq_) init.srq = *srq_;
  return init;
}

template <class Call>
void RcTarget::exclusively(Call&& call) {
  accepted([&] { impl_of(device_)->engine().exclusively(call); });
}

/// 0 to 7. A region that was deregistered is named by what is no STag.
STag RcTarget::stag(unsigned which) const {
  switch (which & 7U) {
    case 3:
      return read_only_ ? read_only_->rkey() : 2;
    case 4:
      return closed_->rkey();
    case 5:
      return foreign_->rkey();
    case 6:
      return window_ ? window_->stag() : 3;
    case 7:
      return fast_ ? fast_->stag() : 4;
    default:
      return open_ ? open_->rkey() : 1;
  }
}

void RcTarget::connect(const RcStart& start, std::unique_ptr<llp::Stream> stream,
                       std::vector<std::byte> leftover) {
  rnic::NegotiatedConnection connection;
  connection.stream = std::move(stream);
  connection.initiator = start.initiator;
  connection.parameters = start.parameters;
  connection.leftover = std::move(leftover);
  output_.restart(start);
  accepted([&] { impl().start(std::move(connection)); });
}

void RcTarget::settle() {
  for (int step = 0; step < kMostSteps; ++step)
    if (device_.progress() == 0) return;
  fail("the device never comes to rest");
}

bool RcTarget::act(Input& in) {
  switch (in.below(12)) {
    case 0:
    case 1:
      post_receive(in);
      break;
    case 2:
    case 3:
    case 4:
    case 5:
      post_send(in);
      break;
    case 6:
      post_local(in);
      break;
    case 7:
      deregister(in);
      break;
    case 8:
      return change_state(in);
    case 9:
      pass_time(in);
      break;
    case 10:
      poll_some(in.flag() ? send_cq_ : recv_cq_, 1 + in.below(4));
      break;
    default:
      settle();
  }
  return false;
}

// --- Requests.

/// In one or two pieces of a slot, which no other receive has.
void RcTarget::post_receive(Input& in) {
  const unsigned how = in.u8();
  if (receives_.size() == kReceives) return;
  const size_t at = (posted_receives_ % kReceives) * kInboxSlot;
  const std::array<uint32_t, 4> lengths{256, 16384, 64, 1};
  const uint32_t room = lengths[how & 3U];
  const uint32_t first = (how & 4U) != 0 ? room / 3 : room;
  const STag key = (how & 0xF8U) == 0xF8U ? closed_->lkey() : inbox_key_;
  std::byte* const begin = memory_.inbox.bytes().data() + at;
  const std::array sges{Sge{begin, first, key}, Sge{begin + first, room - first, key}};
  const ReceiveWorkRequest request{.wr_id = next_id_,
                                   .sges = {sges.data(), first < room ? 2U : 1U}};
  if (srq_ ? srq_->post_recv(request) : qp_->post_recv(request)) return;
  ++posted_receives_;
  std::fill_n(memory_.receives.begin() + static_cast<ptrdiff_t>(at), room, true);
  receives_.posted({.wr_id = next_id_++, .opcode = WcOpcode::recv, .room = room, .at = at});
}

void RcTarget::post_send(Input& in) {
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
  post(request_from(in, kOpcodes[in.below(kOpcodes.size())]));
}

/// Of the outbox, or into the sink or the results; wrong in some way now and then.
SendWorkRequest RcTarget::request_from(Input& in, WrOpcode opcode) {
  const unsigned how = in.u8();
  const std::array<uint32_t, 4> lengths{64, 0, 8000, 1500};
  const auto length = is_atomic(opcode) ? 8U : lengths[how & 3U];
  const size_t at = is_atomic(opcode) ? (how >> 2U & 3U) * 8U : (how >> 2U & 3U) * kSinkSlot;
  GuardedMemory& memory = is_atomic(opcode) ? memory_.results
                          : is_read(opcode) ? memory_.sink
                                            : memory_.outbox;
  STag key = is_atomic(opcode) ? results_key_ : is_read(opcode) ? sink_key_ : outbox_key_;
  if ((how & 0xF0U) == 0xF0U) key = closed_->lkey() ^ (how & 1U);
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

void RcTarget::post(SendWorkRequest request) {
  if (qp_->post_send(request)) return;
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

void RcTarget::post_local(Input& in) {
  const unsigned how = in.u8();
  SendWorkRequest request{.wr_id = next_id_};
  if ((how & 3U) == 0) {
    request.opcode = WrOpcode::local_invalidate;
    request.invalidate_stag = stag(how >> 2U);
  } else if ((how & 1U) != 0) {
    request.opcode = WrOpcode::bind_window;
    request.binding = window_binding(how);
  } else {
    request.opcode = WrOpcode::register_memory;
    request.binding = fast_binding(how);
  }
  post(request);
}

MemoryBinding RcTarget::window_binding(unsigned how) {
  return {.stag = stag(6) ^ (how >> 7U),
          .region = (how & 4U) != 0 ? closed_->rkey()
                    : bound_        ? bound_->rkey()
                                    : 5,
          .address = memory_.bound.bytes().data() + kLentAt,
          .length = (how & 8U) != 0    ? 0U
                    : (how & 16U) != 0 ? 10
                                       : kLent,
          .access = Access::remote_write | Access::remote_read,
          .base = kBase};
}

MemoryBinding RcTarget::fast_binding(unsigned how) {
  return {.stag = stag(7) ^ (how >> 7U),
          .address = memory_.fast.bytes().data() + kLentAt,
          .length = (how & 8U) != 0 ? kLent + 1 : kLent,
          .access = (how & 16U) != 0 ? Access::remote_read : kOpen,
          .base = kBase};
}

void RcTarget::deregister(Input& in) {
  switch (in.below(8)) {
    case 0:
      return open_.reset();
    case 1:
      return read_only_.reset();
    case 2:
      return bound_.reset();
    case 3:
      return inbox_.reset();
    case 4:
      return sink_.reset();
    case 5:
      return outbox_.reset();
    case 6:
      return window_.reset();
    default:
      return fast_.reset();
  }
}

// --- States and time.

/// True if the queue pair is in init again.
bool RcTarget::change_state(Input& in) {
  const auto move_to = [this](QpState to) { accepted([&] { qp_->modify(to); }); };
  switch (in.below(8)) {
    case 0:
      move_to(QpState::sqd);
      break;
    case 1:
      move_to(QpState::rts);
      break;
    case 2:
      move_to(QpState::error);
      break;
    case 3:
      exclusively([&] { impl().begin_disconnect(); });
      break;
    case 4:
      exclusively([&] { impl().give_up_closing(); });
      break;
    case 5:
      move_to(QpState::init);
      break;
    case 6:
      if (srq_) accepted([&] { srq_->set_limit(in.below(12)); });
      break;
    default:
      return reset();
  }
  return false;
}

/// Completed requests were reported before, so that all open ones are dropped.
bool RcTarget::reset() {
  settle();
  poll();
  if (!accepted([&] { qp_->modify(QpState::reset); })) return false;
  sends_.dropped();
  if (!srq_) receives_.dropped();
  return accepted([&] { qp_->modify(QpState::init); });
}

void RcTarget::pass_time(Input& in) {
  constexpr std::array<Duration, 4> kSteps{1ms, 1100ms, 5s, 61s};
  clock_.advance(kSteps[in.below(kSteps.size())]);
  settle();
}

// --- Completions.

/// Polling one queue steps the device, which may fill the other.
void RcTarget::poll() {
  while (poll_some(send_cq_, SIZE_MAX) + poll_some(recv_cq_, SIZE_MAX) != 0) {
  }
}

/// Returns how many there were.
size_t RcTarget::poll_some(CompletionQueue& cq, size_t most) {
  std::array<WorkCompletion, 4> batch;
  for (size_t left = most; left != 0;) {
    const size_t got = cq.poll(std::span(batch).first(std::min(left, batch.size())));
    if (got == 0) return most - left;
    std::for_each_n(batch.begin(), got, [this](const WorkCompletion& wc) { take(wc); });
    left -= got;
  }
  return most;
}

void RcTarget::take(const WorkCompletion& completion) {
  require(completion.qp_number == qp_->number(), "a completion names another queue pair");
  const bool received =
      completion.opcode == WcOpcode::recv || completion.opcode == WcOpcode::recv_immediate;
  if (received) return take_receive(receives_.completed(completion), completion);
  const RequestLedger::Request request = sends_.completed(completion);
  const bool read = completion.opcode == WcOpcode::rdma_read;
  if (!read || completion.status != WcStatus::success || !known_()) return;
  require(is_pattern(std::span(memory_.sink.bytes()).subspan(request.at, request.room),
                     kResponseSeed, kSinkBase + request.at),
          "a Read succeeded without all of its bytes");
}

void RcTarget::take_receive(const RequestLedger::Request& request,
                            const WorkCompletion& completion) {
  if (completion.status != WcStatus::success) return;
  on_receive_(completion, memory_.inbox.bytes().subspan(request.at, request.room));
}

void RcTarget::finish(Input& in) {
  const bool destroys_first = in.flag();
  settle();
  poll();
  memory_.check(known_());
  if (destroys_first) {
    sink_.reset();
    inbox_.reset();
  }
  accepted([&] { qp_->modify(QpState::error); });
  settle();
  poll();
  require(qp_->state() == QpState::error, "a queue pair cannot be moved to error");
  sends_.check_all_completed();
  if (!srq_) receives_.check_all_completed();
  qp_.reset();
  settle();
  memory_.check(known_());
}

}  // namespace diwarp::fuzz
