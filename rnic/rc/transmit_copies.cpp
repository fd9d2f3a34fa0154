// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/transmit_copies.h"

#include <algorithm>
#include <utility>

#include "ddp/scatter.h"

namespace diwarp::rnic {

bool TransmitCopies::reserve(Scratch& copies, size_t bytes, Counters& counters) {
  used_ = true;
  if (copies.reserve(bytes)) return true;
  counters.add(Counter::rc_tx_no_memory);
  return false;
}

RcFramed TransmitCopies::stage(RcFpdu& fpdu, std::span<const Sge> source, size_t burst_bytes,
                               Counters& counters) {
  // A burst, and the FPDU that reaches beyond it.
  const size_t wanted = std::min(burst_bytes, kStagedBurstBytes) + mpa::kMaxUlpdu;
  const uint32_t length = fpdu.segment.length;
  if (staged_ == 0 && !reserve(staging_, wanted, counters) && !staging_.reserve(length))
    return RcFramed::no_memory;
  const Bytes room = staging_.bytes().subspan(staged_);
  if (length > room.size()) return RcFramed::no_room;
  ddp::gather(source, fpdu.segment.offset, room.first(length));
  fpdu.staged = room.data();
  staged_ += length;
  return RcFramed::fpdu;
}

bool TransmitCopies::trim(bool in_use) {
  const bool used = std::exchange(used_, false) || in_use;
  if (!used) release();
  return used;
}

void TransmitCopies::release() {
  staging_.release();
  marked_.release();
}

}  // namespace diwarp::rnic
