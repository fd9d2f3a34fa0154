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

Device open_device(const Clock& clock) {
  rnic::DeviceParts parts;
  parts.clock = &clock;
  const DeviceOptions options{.progress = Progress::manual, .io = IoBackend::syscall};
  return handle_of<Device>(
      std::make_shared<rnic::Device>(Address::parse("127.0.0.1"), options, parts));
}

}  // namespace

RcTarget::RcTarget(Input& in, OnReceive on_receive, Known known)
    : on_receive_(std::move(on_receive)),
      known_(std::move(known)),
      device_(open_device(clock_)),
      send_cq_(device_, 1 + in.below(16)),
      recv_cq_(device_, 1 + in.below(16)),
      regions_(memory_, pd_, other_pd_) {
  const QueuePairInit init = init_from(in);
  qp_.emplace(pd_, init);
  requests_.emplace(memory_, regions_, output_, init.signal_all);
}

QueuePairInit RcTarget::init_from(Input& in) {
  const unsigned how = in.u8();
  QueuePairInit init{.send_cq = send_cq_, .recv_cq = recv_cq_};
  init.capacity = {.max_send_wr = 8,
                   .max_recv_wr = 8,
                   .max_send_sge = 2,
                   .max_recv_sge = 2,
                   .max_inline_data = 64};
  init.signal_all = (how & 1U) != 0;
  if ((how & 2U) != 0) init.stream.receive_not_ready = ReceiveNotReady::terminate;
  if ((how & 4U) != 0) init.stream.max_fpdu = 512;
  if ((how & 8U) != 0)
    srq_.emplace(pd_, SharedReceiveQueueOptions{.max_wr = 8, .max_sge = 2, .limit = how >> 6U});
  if (srq_) init.srq = *srq_;
  return init;
}

template <class Call>
void RcTarget::exclusively(Call&& call) {
  accepted([&] { test::software(device_).engine().exclusively(call); });
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
      requests_->post_receive(in, *qp_, srq_);
      break;
    case 2:
    case 3:
    case 4:
    case 5:
      requests_->post_send(in, *qp_);
      break;
    case 6:
      requests_->post_local(in, *qp_);
      break;
    case 7:
      regions_.deregister(in);
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
  requests_->dropped(srq_.has_value());
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
  if (received) return take_receive(requests_->receive_completed(completion), completion);
  const RequestLedger::Request request = requests_->send_completed(completion);
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
  if (destroys_first) regions_.deregister_sinks();
  accepted([&] { qp_->modify(QpState::error); });
  settle();
  poll();
  require(qp_->state() == QpState::error, "a queue pair cannot be moved to error");
  requests_->check_all_completed(srq_.has_value());
  qp_.reset();
  settle();
  memory_.check(known_());
}

}  // namespace diwarp::fuzz
