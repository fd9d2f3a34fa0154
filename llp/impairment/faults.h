// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "llp/forwarding.h"

/// Links and streams that fail as the system below them may: they take less than they are given,
/// nothing, or refuse. The treatment of datagrams on the way is llp/impairment/impairment.h's
/// subject. Seeded: the same calls meet the same faults.
namespace diwarp::llp {

/// From the datagram `after` on (counted from 0, of those taken) the path carries only this much.
struct NarrowPath {
  uint64_t after = 0;
  size_t max_datagram = 0;  ///< bytes
};

struct LinkFaults {
  uint64_t seed = 1;
  uint32_t block_every = 0;      ///< each so many-th send() takes nothing; 0: none
  size_t take_at_most = 0;       ///< send() takes 1 to so many datagrams, then is full; 0: no limit
  uint32_t refuse_every = 0;     ///< each so many-th datagram is refused; 0: none
  int refuse_error = 0;          ///< with this errno
  uint32_t refuse_in_a_row = 1;  ///< so often, before it passes
  uint32_t idle_every = 0;       ///< each so many-th receive() brings nothing; 0: none
  /// In ascending order. A datagram that is too long is refused with EMSGSIZE, which is when
  /// max_datagram() learns of it, as with an ICMP message.
  std::vector<NarrowPath> paths = {};
};

class FaultyDatagramLink final : public ForwardingDatagramLink {
 public:
  FaultyDatagramLink(std::unique_ptr<DatagramLink> inner, const LinkFaults& faults)
      : ForwardingDatagramLink(std::move(inner)), faults_(faults), random_(faults.seed) {}

  SendResult send(std::span<const OutgoingDatagram> burst) override;
  size_t receive(ReceiveBatch& batch) override;
  size_t max_datagram(const Address& to) override;

  /// How often something was blocked, cut or refused.
  uint64_t injected() const { return injected_; }

 private:
  size_t path() const;
  bool refuses_next();
  /// How many at the front of the burst pass; `error` is that of the next one, if it is refused.
  size_t passing(std::span<const OutgoingDatagram> burst, int& error);

  const LinkFaults faults_;
  Random random_;
  uint64_t sends_ = 0;
  uint64_t receives_ = 0;
  uint64_t offered_ = 0;  // datagrams that refuse_every counts
  uint32_t refusals_left_ = 0;
  uint64_t taken_ = 0;
  size_t known_ = SIZE_MAX;  // as max_datagram() has learned
  uint64_t injected_ = 0;
};

struct StreamFaults {
  uint64_t seed = 1;
  uint32_t block_every = 0;  ///< each so many-th send() and receive() moves nothing; 0: none
  size_t move_at_most = 0;   ///< a call moves 1 to so many bytes; 0: no limit
};

class FaultyStream final : public ForwardingStream {
 public:
  FaultyStream(std::unique_ptr<Stream> inner, const StreamFaults& faults)
      : ForwardingStream(std::move(inner)), faults_(faults), random_(faults.seed) {}

  IoResult send(std::span<const ConstBytes> pieces) override;
  IoResult receive(Bytes buffer) override;

  uint64_t injected() const { return injected_; }

 private:
  bool blocks(uint64_t& calls);
  size_t allowance(size_t wanted);

  const StreamFaults faults_;
  Random random_;
  uint64_t sends_ = 0;
  uint64_t receives_ = 0;
  uint64_t injected_ = 0;
  std::vector<ConstBytes> cut_;
};

}  // namespace diwarp::llp
