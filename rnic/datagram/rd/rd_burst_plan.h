// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "diwarp/types.h"
#include "rnic/datagram/datagram_builder.h"
#include "rnic/datagram/rd/rd_cursor.h"

namespace diwarp::rnic {

class RdPeer;

/// What a datagram of a burst is, until the link has told what became of it.
struct RdPlanned {
  enum class Act : uint8_t { fresh, again, acknowledgement, probe, open, reset };

  Act act = Act::fresh;
  RdPeer* peer = nullptr;
  uint64_t sequence = 0;
  RdPart part = {};
  STag sink = 0;  ///< of a fresh Read Request
};

/// What the datagrams of the burst under way are, by their index. It lies in the engine's burst.
/// RdDatagramWriter owns it. With the baton.
class RdBurstPlan {
 public:
  void begin(DatagramBuilder& builder) { data_ = builder.source_data(); }

  void put(size_t index, const RdPlanned& planned) {
    static_assert(sizeof(RdPlanned) <= DatagramBurst::kSourceDataBytes);
    static_assert(std::is_trivially_copyable_v<RdPlanned>);
    new (data_[index].bytes.data()) RdPlanned(planned);
  }
  const RdPlanned& at(size_t index) const {
    return *std::launder(reinterpret_cast<const RdPlanned*>(data_[index].bytes.data()));
  }

 private:
  DatagramBurst::SourceData* data_ = nullptr;
};

}  // namespace diwarp::rnic
