// SPDX-License-Identifier: Apache-2.0
#include "llp/impairment/faults.h"

#include <algorithm>
#include <cerrno>

namespace diwarp::llp {
namespace {

/// Whether it is the turn of the call that is the `count`th, from 1.
bool strikes(uint64_t count, uint32_t every) { return every != 0 && count % every == 0; }

}  // namespace

// --- Datagrams.

SendResult FaultyDatagramLink::send(std::span<const OutgoingDatagram> burst) {
  if (burst.empty()) return inner().send(burst);
  if (strikes(++sends_, faults_.block_every)) {
    ++injected_;
    return {0, SendStatus::would_block, EAGAIN};
  }
  size_t allowed = burst.size();
  if (faults_.take_at_most != 0)
    allowed = std::min<size_t>(allowed, 1 + random_.below(faults_.take_at_most));
  int error = 0;
  const size_t count = passing(burst.first(allowed), error);
  const SendResult result = count == 0 ? SendResult{} : inner().send(burst.first(count));
  taken_ += result.sent;
  if (result.status != SendStatus::ok) return result;
  if (error == 0 && count == burst.size()) return result;
  ++injected_;
  if (error == 0) return {count, SendStatus::would_block, EAGAIN};
  if (error == EMSGSIZE) known_ = path();
  return {count, SendStatus::refused, error};
}

size_t FaultyDatagramLink::passing(std::span<const OutgoingDatagram> burst, int& error) {
  for (size_t i = 0; i < burst.size(); ++i) {
    if (burst[i].size() > path())
      error = EMSGSIZE;
    else if (refuses_next())
      error = faults_.refuse_error;
    if (error != 0) return i;
  }
  return burst.size();
}

bool FaultyDatagramLink::refuses_next() {
  if (refusals_left_ == 0 && strikes(++offered_, faults_.refuse_every))
    refusals_left_ = faults_.refuse_in_a_row;
  if (refusals_left_ == 0) return false;
  --refusals_left_;
  return true;
}

size_t FaultyDatagramLink::path() const {
  size_t result = SIZE_MAX;
  for (const NarrowPath& narrow : faults_.paths)
    if (taken_ >= narrow.after) result = narrow.max_datagram;
  return result;
}

size_t FaultyDatagramLink::max_datagram(const Address& to) {
  return std::min(inner().max_datagram(to), known_);
}

size_t FaultyDatagramLink::receive(ReceiveBatch& batch) {
  if (!strikes(++receives_, faults_.idle_every)) return inner().receive(batch);
  batch.clear();
  return 0;
}

// --- Streams.

bool FaultyStream::blocks(uint64_t& calls) {
  const bool result = strikes(++calls, faults_.block_every);
  if (result) ++injected_;
  return result;
}

size_t FaultyStream::allowance(size_t wanted) {
  if (faults_.move_at_most == 0) return wanted;
  const size_t result = std::min<size_t>(wanted, 1 + random_.below(faults_.move_at_most));
  if (result < wanted) ++injected_;
  return result;
}

IoResult FaultyStream::send(std::span<const ConstBytes> pieces) {
  if (blocks(sends_)) return {IoStatus::would_block, 0, 0};
  size_t wanted = 0;
  for (ConstBytes piece : pieces) wanted += piece.size();
  size_t left = allowance(wanted);
  cut_.clear();
  for (ConstBytes piece : pieces) {
    cut_.push_back(piece.first(std::min(piece.size(), left)));
    left -= cut_.back().size();
  }
  return inner().send(cut_);
}

IoResult FaultyStream::receive(Bytes buffer) {
  if (blocks(receives_)) return {IoStatus::would_block, 0, 0};
  return inner().receive(buffer.first(allowance(buffer.size())));
}

}  // namespace diwarp::llp
