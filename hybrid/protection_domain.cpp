// SPDX-License-Identifier: Apache-2.0
#include "hybrid/protection_domain.h"

#include <utility>

#include "diwarp/error.h"
#include "hybrid/completion_queue.h"
#include "hybrid/memory_region.h"
#include "hybrid/one_stag.h"
#include "hybrid/shared_receive_queue.h"
#include "provider/own.h"
#include "provider/queue_pair_init.h"

namespace diwarp::hybrid {

ProtectionDomain::ProtectionDomain(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      halves_{.software = device_->halves().software->make_protection_domain(),
              .hardware = device_->halves().hardware->make_protection_domain()} {}

void ProtectionDomain::check_destination(const Address& destination) const {
  halves_.software->check_destination(destination);
}

std::shared_ptr<provider::MemoryRegion> ProtectionDomain::register_memory(
    std::span<std::byte> memory, Access access, std::optional<uint64_t> base,
    std::optional<STag> chosen) {
  if (chosen) return halves_.hardware->register_memory(memory, access, base, chosen);  // refuses
  return std::make_shared<MemoryRegion>(shared_from_this(), memory, access, base);
}

std::shared_ptr<provider::SteeringTag> ProtectionDomain::make_window(std::optional<STag> chosen) {
  using Windows = Halves<provider::SteeringTag>;
  const Capability able = device_->halves().hardware->query().capabilities;
  if (!has(able, Capability::memory_windows))
    return std::make_shared<SteeringTag>(
        Windows{.software = halves_.software->make_window(chosen), .hardware = nullptr});
  return std::make_shared<SteeringTag>(under_one_stag<Windows>(
      [&] { return halves_.hardware->make_window(chosen); },
      [](const provider::SteeringTag& window) { return window.stag(); },
      [&](std::optional<STag> stag) { return halves_.software->make_window(stag); }));
}

std::shared_ptr<provider::SteeringTag> ProtectionDomain::make_fast_registration(
    uint64_t max_length) {
  return halves_.software->make_fast_registration(max_length);
}

std::shared_ptr<provider::SharedReceiveQueue> ProtectionDomain::make_shared_receive_queue(
    const SharedReceiveQueueOptions& options) {
  return std::make_shared<SharedReceiveQueue>(shared_from_this(), options);
}

std::shared_ptr<provider::CompletionQueue> ProtectionDomain::half_of(
    const std::shared_ptr<provider::CompletionQueue>& queue, Half half) const {
  if (!queue) return nullptr;  // the half refuses
  auto& own = provider::own<CompletionQueue>(*queue, "completion queue");
  if (own.device() != device_.get()) provider::refuse_foreign("completion queue");
  return own.use(half);
}

std::shared_ptr<provider::QueuePair> ProtectionDomain::make_queue_pair(
    const provider::QueuePairInit& init) {
  const Half half = init.type == QpType::rc ? Half::hardware : Half::software;
  provider::QueuePairInit own = init;
  own.send_cq = half_of(init.send_cq, half);
  own.recv_cq = half_of(init.recv_cq, half);
  if (!init.srq) return halves_.of(half)->make_queue_pair(own);
  auto& srq = provider::own<SharedReceiveQueue>(*init.srq, "shared receive queue");
  if (srq.domain() != this) provider::refuse_other_domain();
  own.srq = srq.half(half);
  auto made = halves_.of(half)->make_queue_pair(own);
  srq.decide(half);
  return made;
}

}  // namespace diwarp::hybrid
