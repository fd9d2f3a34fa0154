// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "dgram/envelope_format.h"

namespace diwarp::dgram {

/// An envelope with the shape of one that encrypts and authenticates, but no cryptography:
///
///   prefix (24): nonce (64) | class (8) | flags (8) | 0 (16) | incarnation (32) | ~nonce (64)
///   body, every byte of it masked
///   trailer (16): two sums over all before it
///
/// Sealing leaves the application's memory as it is, and opening unmasks the body where it lies: a
/// datagram that is opened twice is not valid the second time.
class SealedEnvelope : public EnvelopeSizes<24, 16> {
 public:
  class Sealer {
   public:
    explicit Sealer(size_t bytes) : masked_(std::make_unique<std::byte[]>(bytes)), size_(bytes) {}
    Sealer(Sealer&&) = default;

    size_t seal(const Labels& labels, Bytes front, std::span<ConstBytes> rest, Bytes trailer);
    void clear() { used_ = 0; }

   private:
    std::unique_ptr<std::byte[]> masked_;  // the payload of the burst
    size_t size_;
    size_t used_ = 0;
    uint64_t nonce_ = 0;
  };

  static OpenedEnvelope open(Bytes datagram);
  /// Nobody can tell: the labels are masked.
  static std::optional<uint32_t> quoted_incarnation(ConstBytes /*beginning*/) {
    return std::nullopt;
  }
};

}  // namespace diwarp::dgram
