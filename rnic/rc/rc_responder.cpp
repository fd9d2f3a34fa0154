// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_responder.h"

#include <atomic>

#include "rdmap/terminate.h"

namespace diwarp::rnic {

namespace {

namespace fault = rdmap::fault;

constexpr uint64_t kAtomicBytes = 8;

}  // namespace

void RcResponder::start(uint16_t ird) {
  ird_ = ird;
  ring_.clear();
  first_ = count_ = begun_ = 0;
}

std::optional<TerminateCode> RcResponder::take(const Request& request) {
  if (count_ == ird_) return fault::kNoBuffer;  // guard(rows:ird-enforced)
  if (const auto found =
          std::visit([this](const auto& one) { return check_request(one); }, request))
    return found;
  if (ring_.empty()) ring_.resize(ird_);
  // guard(rows:response-order): count_++ => (count_++ ^ 1U)
  ring_[(first_ + count_++) % ring_.size()] = request;
  return std::nullopt;
}

void RcResponder::finish() {
  first_ = static_cast<uint16_t>((first_ + 1) % ring_.size());
  --count_;
  --begun_;
}

/// A Read of no length reads nothing: its STag and offset are not looked at (RFC 5040 section 5.2).
std::optional<TerminateCode> RcResponder::check_request(const rdmap::ReadRequest& request) const {
  if (request.length == 0) return std::nullopt;  // guard(rows:read-of-none)
  // guard(rows:read-checks): Access::remote_read => Access::none
  const ddp::RegionFault found =
      check(request.source_stag, Access::remote_read, request.source_offset, request.length);
  // guard(rows:read-checks)
  if (found != ddp::RegionFault::none) return rdmap::remote_protection_fault(found);
  return std::nullopt;
}

std::optional<TerminateCode> RcResponder::check_request(const rdmap::AtomicRequest& request) const {
  // guard(rows:atomic-unknown): fault::kUnexpectedOpcode => fault::kUnspecified
  if (!rdmap::apply(request, 0)) return fault::kUnexpectedOpcode;
  // guard(rows:atomic-right): Access::remote_atomic => Access::none
  const ddp::RegionFault found =
      check(request.stag, Access::remote_atomic, request.offset, kAtomicBytes);
  // guard(rows:atomic-checks)
  if (found != ddp::RegionFault::none) return rdmap::remote_protection_fault(found);
  const auto place = reinterpret_cast<uintptr_t>(address(request.stag, request.offset));
  if (place % kAtomicBytes != 0) return fault::kStreamCatastrophic;  // guard(rows:atomic-aligned)
  return std::nullopt;
}

ddp::RegionFault RcResponder::check(uint32_t stag, Access want, uint64_t offset,
                                    uint64_t length) const {
  return protection_.check_tagged(stag, want, offset, length).fault;
}

/// Of what was checked; null if the region goes away this very moment.
std::byte* RcResponder::address(uint32_t stag, uint64_t offset) const {
  const ddp::Region* const region = protection_.find(stag);
  return region == nullptr ? nullptr : region->memory + (offset - region->base);
}

std::optional<Sge> RcResponder::source(const rdmap::ReadRequest& request) const {
  if (request.length == 0) return Sge{};
  if (check_request(request)) return std::nullopt;
  std::byte* const memory = address(request.source_stag, request.source_offset);
  if (memory == nullptr) return std::nullopt;
  return Sge{memory, request.length, request.source_stag};
}

std::optional<uint64_t> RcResponder::perform(const rdmap::AtomicRequest& request) const {
  if (check_request(request)) return std::nullopt;
  auto* const word = reinterpret_cast<uint64_t*>(address(request.stag, request.offset));
  if (word == nullptr) return std::nullopt;
  const std::atomic_ref<uint64_t> target(*word);
  uint64_t before = target.load();
  while (!target.compare_exchange_weak(before, *rdmap::apply(request, before))) {
  }
  return before;
}

}  // namespace diwarp::rnic
