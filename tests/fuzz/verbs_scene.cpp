// SPDX-License-Identifier: Apache-2.0
// The objects of a run: made, changed and destroyed.
#include "fuzz/verbs_scene.h"

#include <string>
#include <utility>

#include "fuzz/verbs_calls.h"
#include "rnic/device.h"
#include "rnic/rc/rc_queue_pair.h"
#include "verbs/handle_access.h"

namespace diwarp::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr int kMostSteps = 100000;

Device open_device(size_t index, const Clock& clock,
                   const std::shared_ptr<llp::MemoryNetwork>& network) {
  rnic::DeviceParts parts;
  parts.clock = &clock;
  parts.datagram_links = [network](const Address& local, const DatagramOptions& options) {
    return network->open(local, options.group.loopback);
  };
  const DeviceOptions options{.progress = Progress::manual, .io = IoBackend::syscall};
  const Address host = Address::parse("10.0.0." + std::to_string(index + 1));
  return handle_of<Device>(std::make_shared<rnic::Device>(host, options, std::move(parts)));
}

rnic::RcQueuePair& rc_of(VerbsQp& which) {
  return static_cast<rnic::RcQueuePair&>(*impl_of(*which.qp));
}

/// A place for a new object: the first that is empty.
template <class Slots>
typename Slots::value_type* free_slot(Slots& slots) {
  for (auto& slot : slots)
    if (!slot) return &slot;
  return nullptr;
}

}  // namespace

VerbsScene::VerbsScene(Input& in)
    : in_(in), network_(llp::MemoryNetwork::create({.queue_datagrams = in.flag() ? 16U : 1024U})) {
  for (size_t i = 0; i < kDevices; ++i) {
    devices_.push_back(open_device(i, clock_, network_));
    channels_.emplace_back(devices_[i]);
    events_.emplace_back(devices_[i]);
  }
}

VerbsScene::~VerbsScene() = default;

void VerbsScene::act() {
  VerbsQp* const which = pick(qps_);
  if (which == nullptr) return create();
  switch (in_.below(16)) {
    case 0:
      return create();
    case 1:
      return destroy();
    case 2:
    case 3:
      return which->srq ? post_receive(*which->srq) : post_receive(*which);
    case 4:
    case 5:
    case 6:
    case 7:
      return post_send(*which);
    case 8:
      return post_batch(*which);
    case 9:
      return change_state(*which);
    case 10: {
      VerbsQp* const other = pick(qps_);
      return other != nullptr && other != which ? join(*which, *other) : void();
    }
    case 11:
      return pass_time();
    case 12:
      return settle();
    case 13:
      return query(*which);
    case 14:
      return listen_to_events();
    default: {
      VerbsCq* const cq = pick(cqs_);
      if (cq != nullptr) poll(*cq, 1 + in_.below(8));
    }
  }
}

// --- Creation.

void VerbsScene::create() {
  switch (in_.below(8)) {
    case 0:
      return create_cq();
    case 1:
      return create_region();
    case 2:
      return create_srq();
    case 3:
      return create_window();
    default:
      return create_qp();
  }
}

void VerbsScene::create_cq() {
  auto* const slot = free_slot(cqs_);
  if (slot == nullptr) return;
  const unsigned device = in_.below(kDevices), how = in_.u8();
  const uint32_t entries = (how & 15U) == 15U ? 0 : 1 + (how & 15U);
  accepted([&] {
    CompletionQueue cq = (how & 16U) != 0
                             ? CompletionQueue(devices_[device], entries, channels_[device], how)
                             : CompletionQueue(devices_[device], entries);
    *slot = std::make_shared<VerbsCq>(VerbsCq{device, ++last_serial_, std::move(cq)});
  });
}

void VerbsScene::create_region() {
  auto* const slot = free_slot(regions_);
  VerbsDomain* const domain = pick(domains_);
  if (slot == nullptr || domain == nullptr) return;
  const unsigned how = in_.u8();
  constexpr Access kOpen = Access::local_write | Access::remote_write | Access::remote_read |
                           Access::remote_atomic | Access::window_bind;
  constexpr std::array kRights{kOpen, Access::remote_read, kOpen | Access::remote_invalidate,
                               Access::remote_read | Access::remote_invalidate};
  const Access rights = (how & 0xC0U) == 0xC0U ? static_cast<Access>(how & 63U) : kRights[how & 3U];
  accepted([&] {
    *slot = std::make_shared<VerbsRegion>(domain->pd, size_t{64} << (how >> 2U & 7U), rights,
                                          static_cast<uint32_t>(30 + ++last_serial_));
  });
}

void VerbsScene::create_srq() {
  auto* const slot = free_slot(srqs_);
  auto& domain = domains_[in_.below(kSlots)];
  if (slot == nullptr || !domain) return;
  const unsigned how = in_.u8();
  accepted([&] {
    SharedReceiveQueue srq(domain->pd,
                           {.max_wr = how & 15U, .max_sge = 2, .limit = how >> 4U & 3U});
    ledgers_.push_back(std::make_shared<VerbsLedger>("a shared receive queue"));
    ledgers_.back()->ordered = false;
    *slot = std::make_shared<VerbsSrq>(
        VerbsSrq{domain, std::move(srq), ledgers_.back(), ledgers_.size() - 1});
  });
}

void VerbsScene::create_window() {
  VerbsDomain* const domain = pick(domains_);
  if (domain == nullptr) return;
  const unsigned how = in_.u8();
  if (auto* const slot = free_slot(windows_); slot != nullptr && (how & 1U) != 0)
    *slot = std::make_shared<MemoryWindow>(domain->pd);
  if (auto* const slot = free_slot(fast_); slot != nullptr && (how & 1U) == 0)
    accepted([&] { *slot = std::make_shared<FastRegistration>(domain->pd, how * 8U); });
}

/// With a domain and completion queues where there are none yet.
void VerbsScene::create_qp() {
  auto* const slot = free_slot(qps_);
  auto& domain = domains_[in_.below(kSlots)];
  if (!domain) {
    const unsigned device = in_.below(kDevices);
    domain = std::make_shared<VerbsDomain>(device, devices_[device]);
  }
  if (slot == nullptr) return;
  auto made = std::make_shared<VerbsQp>();
  made->domain = domain;
  const std::optional<QueuePairInit> init = init_of(*made);
  if (!init || !accepted([&] { made->qp.emplace(domain->pd, *init); })) return;
  made->serial = static_cast<uint32_t>(++last_serial_);
  made->ledgers = ledgers_.size();
  ledgers_.push_back(std::make_shared<VerbsLedger>("a send queue"));
  ledgers_.back()->ordered = init->reliable.completion_order == CompletionOrder::posting;
  ledgers_.push_back(std::make_shared<VerbsLedger>("a receive queue"));
  ledgers_.back()->ordered = made->type == QpType::rc;
  keys_.insert(key_of(*made));
  *slot = std::move(made);
}

std::optional<QueuePairInit> VerbsScene::init_of(VerbsQp& made) {
  const unsigned how = in_.u8();
  constexpr std::array kTypes{QpType::rc, QpType::ud, QpType::rd, QpType::rc};
  VerbsCq* sends = pick(cqs_);
  VerbsCq* receives = pick(cqs_);
  if (sends == nullptr || receives == nullptr) {
    create_cq();
    return std::nullopt;
  }
  auto& srq = srqs_[in_.below(kSlots)];
  QueuePairInit init{.type = kTypes[how & 3U], .send_cq = sends->cq, .recv_cq = receives->cq};
  init.capacity = {.max_send_wr = 4,
                   .max_recv_wr = 4,
                   .max_send_sge = 2,
                   .max_recv_sge = 2,
                   .max_inline_data = 64};
  init.signal_all = (how & 4U) != 0;
  init.datagram.segment = (how & 8U) != 0 ? 300 : 0;
  init.datagram.record_completion = static_cast<RecordCompletion>((how >> 4U & 3U) % 3U);
  if (init.type == QpType::rc && (how & 8U) != 0 && srq) {
    made.srq = srq;
    init.srq = srq->srq;
  }
  if (init.type == QpType::rd && (how & 0x40U) != 0)
    init.reliable.completion_order = CompletionOrder::peer;
  if ((how & 0x80U) != 0) {
    init.stream.receive_not_ready = ReceiveNotReady::terminate;
    init.reliable.error_scope = ErrorScope::queue_pair;
  }
  made.type = init.type;
  made.send_cq = sends->serial;
  made.recv_cq = receives->serial;
  made.signal_all = init.signal_all;
  return init;
}

// --- States.

void VerbsScene::change_state(VerbsQp& which) {
  const unsigned how = in_.below(10);
  switch (how) {
    case 7:
      return void(accepted([&] {
        impl_of(devices_[which.domain->device])->engine().exclusively([&] {
          if (which.type == QpType::rc) rc_of(which).begin_disconnect();
        });
      }));
    case 8:
      if (which.type == QpType::rc)
        impl_of(devices_[which.domain->device])->engine().exclusively([&] {
          rc_of(which).give_up_closing();
        });
      return;
    case 0:
    case 9:
      return reset(which);
    default:
      accepted([&] { which.qp->modify(static_cast<QpState>(how)); });
  }
  if (how == static_cast<unsigned>(QpState::error)) check_flushed(which);
}

/// Completed requests were reported before, so that all open ones are dropped. Where it cannot be
/// polled some of it may still lie in a completion queue: the queue pair stays as it is.
void VerbsScene::reset(VerbsQp& which) {
  settle();
  poll_all();
  if (!has_cq(which.send_cq) || !has_cq(which.recv_cq)) return;
  if (!accepted([&] { which.qp->modify(QpState::reset); })) return;
  for (const uint64_t number : {which.ledgers, which.ledgers + 1}) {
    ledgers_[number]->open.dropped();
    ledgers_[number]->sinks.clear();
  }
  accepted([&] { which.qp->modify(QpState::init); });
  if (which.type != QpType::rc) accepted([&] { which.qp->modify(QpState::rts); });
}

/// In error, everything that was posted completes.
void VerbsScene::check_flushed(const VerbsQp& which) {
  settle();
  poll_all();
  if (which.qp->state() != QpState::error) return;
  if (has_cq(which.send_cq)) ledgers_[which.ledgers]->open.check_all_completed();
  if (has_cq(which.recv_cq)) ledgers_[which.ledgers + 1]->open.check_all_completed();
}

/// Over a stream in memory, as two sides do whose start-up negotiated this.
void VerbsScene::join(VerbsQp& a, VerbsQp& b) {
  if (a.type != QpType::rc || b.type != QpType::rc) return;
  if (a.qp->state() != QpState::init || b.qp->state() != QpState::init) return;
  const unsigned how = in_.u8();
  const auto negotiated = [&](bool initiator) {
    rnic::NegotiatedConnection side;
    side.initiator = initiator;
    side.parameters.crc = (how & 1U) == 0;
    side.parameters.send_markers = (how & (initiator ? 2U : 4U)) != 0;
    side.parameters.receive_markers = (how & (initiator ? 4U : 2U)) != 0;
    side.parameters.ready = static_cast<ReadyToReceive>(how >> 3U & 3U);
    side.parameters.ord = side.parameters.ird = static_cast<uint16_t>(1 + (how >> 5U & 1U));
    return side;
  };
  auto [first, second] =
      llp::memory_stream_pair((how & 64U) != 0 ? 2048 : 65536, (how & 128U) != 0 ? 256 : 1460);
  rnic::NegotiatedConnection of_a = negotiated(true), of_b = negotiated(false);
  of_a.stream = std::move(first);
  of_b.stream = std::move(second);
  a.peer = b.serial;
  b.peer = a.serial;
  rc_of(a).start(std::move(of_a));
  rc_of(b).start(std::move(of_b));
}

/// Calls that change nothing that the run knows of.
void VerbsScene::query(VerbsQp& which) {
  const QueuePairAttributes attributes = which.qp->query();
  require(attributes.posted_sends <= 4 && (which.srq || attributes.posted_receives <= 4),
          "a queue says that it holds more than it can");
  if (which.type == QpType::rc) return;
  accepted([&] { which.qp->poll_error(); });
  accepted([&] { which.qp->open_records(); });
  accepted([&] { which.qp->peers(); });
  const unsigned how = in_.u8();
  if ((how & 3U) == 0) accepted([&] { which.qp->set_max_rate((how >> 2U) * 10000U); });
  if ((how & 3U) == 1) accepted([&] { which.qp->join(Address::parse("239.1.1.1"), ""); });
  if ((how & 3U) == 2) accepted([&] { which.qp->leave(Address::parse("239.1.1.1"), ""); });
}

// --- Destruction: in any order.

void VerbsScene::destroy() {
  const unsigned which = in_.u8();
  const size_t slot = (which >> 4U) % kSlots;
  switch (which & 7U) {
    case 0:
      return cqs_[slot].reset();
    case 1:
      return regions_[slot].reset();
    case 2:
      return windows_[slot].reset();
    case 3:
      return fast_[slot].reset();
    case 4:
      return srqs_[slot].reset();
    case 5:
      return domains_[slot].reset();
    case 6:
      return domains_[slot] ? domains_[slot]->deregister() : void();
    default:
      return qps_[(which >> 4U) % kQueuePairs].reset();
  }
}

bool VerbsScene::has_cq(uint64_t serial) const {
  return std::ranges::any_of(cqs_, [&](const auto& cq) { return cq && cq->serial == serial; });
}

void VerbsScene::settle() {
  for (int step = 0; step < kMostSteps; ++step) {
    size_t work = 0;
    for (Device& device : devices_) work += device.progress();
    if (work == 0) return;
  }
  fail("the devices never come to rest");
}

void VerbsScene::pass_time() {
  constexpr std::array<Duration, 8> kSteps{1ms, 5ms, 20ms, 100ms, 1100ms, 5s, 12s, 61s};
  clock_.advance(kSteps[in_.below(kSteps.size())]);
  settle();
}

void VerbsScene::finish() {
  for (const auto& which : qps_) {
    if (!which) continue;
    which->qp->modify(QpState::error);
    check_flushed(*which);
  }
  const bool forwards = in_.flag();
  for (size_t i = 0; i < kQueuePairs; ++i) qps_[forwards ? i : kQueuePairs - 1 - i].reset();
  settle();
  poll_all();
  registered_.check_unchanged("memory that was registered for Reads was written");
}

}  // namespace diwarp::fuzz
