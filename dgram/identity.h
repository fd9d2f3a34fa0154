// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/siphash.h"
#include "diwarp/address.h"

namespace diwarp::dgram {

/// The names that a queue pair goes by, all made of one secret: nobody learns what another is
/// shown. A new secret makes a new source of the queue pair.
class Identity {
 public:
  Identity() = default;
  explicit Identity(const SipKey& secret) : secret_(secret) {}

  /// The incarnation that this destination (address, scope and port; or a group) is shown. Never
  /// 0, which means unknown. Datagrams to one destination come in trains: the last is remembered.
  uint32_t incarnation(const Address& destination) {
    // guard(incarnations): without && latest_ == destination
    if (latest_incarnation_ != 0 && latest_ == destination) return latest_incarnation_;
    return draw_incarnation(destination);
  }

  /// The name of the next association with this peer. Never 0. It begins at a number that only the
  /// two ends learn, and is later than all before it in serial number arithmetic (RFC 1982).
  uint32_t next_epoch(const Address& peer);

  /// 64 bits that nobody can tell in advance. None comes twice.
  uint64_t next_nonce();

 private:
  uint32_t draw_incarnation(const Address& destination);
  uint64_t derive(uint8_t purpose, const Address& address, uint64_t count) const;

  SipKey secret_;
  Address latest_;
  uint32_t latest_incarnation_ = 0;  // 0: none is remembered
  uint32_t epochs_ = 0;              // counts the associations with all peers
  uint64_t nonces_ = 0;
};

}  // namespace diwarp::dgram
