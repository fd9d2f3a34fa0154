// SPDX-License-Identifier: Apache-2.0
#include "fuzz/verbs_creation.h"

#include <array>
#include <memory>
#include <utility>

#include "fuzz/verbs_calls.h"

namespace diwarp::fuzz {
namespace {

/// A place for a new object: the first that is empty.
template <class Slots>
typename Slots::value_type* free_slot(Slots& slots) {
  for (auto& slot : slots)
    if (!slot) return &slot;
  return nullptr;
}

}  // namespace

void VerbsCreation::create() {
  switch (run_.in.below(8)) {
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

void VerbsCreation::create_cq() {
  auto* const slot = free_slot(run_.slots.cqs);
  if (slot == nullptr) return;
  const unsigned device = run_.in.below(VerbsHosts::kDevices), how = run_.in.u8();
  const uint32_t entries = (how & 15U) == 15U ? 0 : 1 + (how & 15U);
  accepted([&] {
    CompletionQueue cq = (how & 16U) != 0 ? CompletionQueue(run_.hosts.devices[device], entries,
                                                            run_.hosts.channels[device], how)
                                          : CompletionQueue(run_.hosts.devices[device], entries);
    *slot = std::make_shared<VerbsCq>(VerbsCq{device, ++run_.slots.last_serial, std::move(cq)});
  });
}

void VerbsCreation::create_region() {
  auto* const slot = free_slot(run_.slots.regions);
  VerbsDomain* const domain = run_.pick(run_.slots.domains);
  if (slot == nullptr || domain == nullptr) return;
  const unsigned how = run_.in.u8();
  constexpr Access kOpen = Access::local_write | Access::remote_write | Access::remote_read |
                           Access::remote_atomic | Access::window_bind;
  constexpr std::array kRights{kOpen, Access::remote_read, kOpen | Access::remote_invalidate,
                               Access::remote_read | Access::remote_invalidate};
  const Access rights = (how & 0xC0U) == 0xC0U ? static_cast<Access>(how & 63U) : kRights[how & 3U];
  accepted([&] {
    *slot = std::make_shared<VerbsRegion>(domain->pd, size_t{64} << (how >> 2U & 7U), rights,
                                          static_cast<uint32_t>(30 + ++run_.slots.last_serial));
  });
}

void VerbsCreation::create_srq() {
  auto* const slot = free_slot(run_.slots.srqs);
  auto& domain = run_.slots.domains[run_.in.below(VerbsSlots::kSlots)];
  if (slot == nullptr || !domain) return;
  const unsigned how = run_.in.u8();
  accepted([&] {
    SharedReceiveQueue srq(domain->pd,
                           {.max_wr = how & 15U, .max_sge = 2, .limit = how >> 4U & 3U});
    run_.posted.ledgers.push_back(std::make_shared<VerbsLedger>("a shared receive queue"));
    run_.posted.ledgers.back()->ordered = false;
    *slot = std::make_shared<VerbsSrq>(VerbsSrq{domain, std::move(srq), run_.posted.ledgers.back(),
                                                run_.posted.ledgers.size() - 1});
  });
}

void VerbsCreation::create_window() {
  VerbsDomain* const domain = run_.pick(run_.slots.domains);
  if (domain == nullptr) return;
  const unsigned how = run_.in.u8();
  if (auto* const slot = free_slot(run_.slots.windows); slot != nullptr && (how & 1U) != 0)
    *slot = std::make_shared<MemoryWindow>(domain->pd);
  if (auto* const slot = free_slot(run_.slots.fast); slot != nullptr && (how & 1U) == 0)
    accepted([&] { *slot = std::make_shared<FastRegistration>(domain->pd, how * 8U); });
}

/// With a domain and completion queues where there are none yet.
void VerbsCreation::create_qp() {
  auto* const slot = free_slot(run_.slots.qps);
  auto& domain = run_.slots.domains[run_.in.below(VerbsSlots::kSlots)];
  if (!domain) {
    const unsigned device = run_.in.below(VerbsHosts::kDevices);
    domain = std::make_shared<VerbsDomain>(device, run_.hosts.devices[device]);
  }
  if (slot == nullptr) return;
  auto made = std::make_shared<VerbsQp>();
  made->domain = domain;
  const std::optional<QueuePairInit> init = init_of(*made);
  if (!init || !accepted([&] { made->qp.emplace(domain->pd, *init); })) return;
  made->serial = static_cast<uint32_t>(++run_.slots.last_serial);
  made->ledgers = run_.posted.ledgers.size();
  run_.posted.ledgers.push_back(std::make_shared<VerbsLedger>("a send queue"));
  run_.posted.ledgers.back()->ordered = init->reliable.completion_order == CompletionOrder::posting;
  run_.posted.ledgers.push_back(std::make_shared<VerbsLedger>("a receive queue"));
  run_.posted.ledgers.back()->ordered = made->type == QpType::rc;
  run_.posted.queue_pairs.insert(key_of(*made));
  *slot = std::move(made);
}

std::optional<QueuePairInit> VerbsCreation::init_of(VerbsQp& made) {
  const unsigned how = run_.in.u8();
  constexpr std::array kTypes{QpType::rc, QpType::ud, QpType::rd, QpType::rc};
  VerbsCq* sends = run_.pick(run_.slots.cqs);
  VerbsCq* receives = run_.pick(run_.slots.cqs);
  if (sends == nullptr || receives == nullptr) {
    create_cq();
    return std::nullopt;
  }
  auto& srq = run_.slots.srqs[run_.in.below(VerbsSlots::kSlots)];
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

}  // namespace diwarp::fuzz
