// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "ddp/protection_context.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "rdmap/stream_receiver.h"

namespace diwarp::rnic {

/// The peer's Reads and atomics that are not answered yet, at most IRD of them, in the order they
/// came (RFC 5040 section 5.5). Atomics are performed when their turn to be answered comes, so that
/// a Read before one sees the memory as it was. With the baton.
class RcResponder {
 public:
  using Request = std::variant<rdmap::ReadRequest, rdmap::AtomicRequest>;

  explicit RcResponder(const ddp::ProtectionContext& protection) : protection_(protection) {}

  /// For a new stream whose peer may have so many requests outstanding.
  void start(uint16_t ird);

  /// Takes a request, or tells why the connection ends.
  std::optional<TerminateCode> take(const Request& request);

  /// The oldest request whose answer was not begun; null where there is none.
  const Request* next() const { return begun_ < count_ ? &at(begun_) : nullptr; }
  void begin() { ++begun_; }
  /// The oldest answer is wholly on the stream.
  void finish();

  /// The memory that this Read is answered from, if it may (still) be read.
  std::optional<Sge> source(const rdmap::ReadRequest& request) const;
  /// Does the operation. Nothing where that is not allowed (any more).
  std::optional<uint64_t> perform(const rdmap::AtomicRequest& request) const;

 private:
  std::optional<TerminateCode> check_request(const rdmap::ReadRequest& request) const;
  std::optional<TerminateCode> check_request(const rdmap::AtomicRequest& request) const;
  ddp::RegionFault check(uint32_t stag, Access want, uint64_t offset, uint64_t length) const;
  std::byte* address(uint32_t stag, uint64_t offset) const;
  const Request& at(size_t index) const { return ring_[(first_ + index) % ring_.size()]; }

  const ddp::ProtectionContext& protection_;
  uint16_t ird_ = 0;
  uint16_t first_ = 0;  // place in the ring
  uint16_t count_ = 0;
  uint16_t begun_ = 0;         // of these
  std::vector<Request> ring_;  // of ird_, from the first request on
};

}  // namespace diwarp::rnic
