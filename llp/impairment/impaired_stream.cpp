// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "llp/impairment/impairment.h"

namespace diwarp::llp {
namespace {

constexpr size_t kDelayedBytes = size_t{64} << 10;

}  // namespace

ImpairedStream::ImpairedStream(std::unique_ptr<Stream> inner, const StreamImpairment& impairment,
                               Clock& clock)
    : ForwardingStream(std::move(inner)),
      impairment_(impairment),
      clock_(clock),
      chunks_(impairment.seed),
      corruption_(~impairment.seed),
      delayed_(impairment.delay > Duration{0} ? kDelayedBytes : 0) {}

IoResult ImpairedStream::receive(Bytes buffer) {
  if (impairment_.cut_after && offset_ >= *impairment_.cut_after) {
    inner().abort();
    return {IoStatus::failed, 0, ECONNRESET};
  }
  const Bytes allowed = buffer.first(allowance(buffer.size()));
  const IoResult result = delayed_.empty() ? inner().receive(allowed) : receive_delayed(allowed);
  if (result.status == IoStatus::ok) {
    corrupt(allowed.first(result.bytes));
    offset_ += result.bytes;
  }
  return result;
}

/// How many of the bytes wanted this call may give.
size_t ImpairedStream::allowance(size_t wanted) {
  size_t result = wanted;
  if (impairment_.max_chunk > 0) {
    result = std::min<size_t>(result, 1 + chunks_.below(impairment_.max_chunk));
  }
  if (impairment_.cut_after) {
    result = std::min<uint64_t>(result, *impairment_.cut_after - offset_);
  }
  return result;
}

IoResult ImpairedStream::receive_delayed(Bytes buffer) {
  if (delayed_begin_ == delayed_end_) {
    const IoResult result = inner().receive(delayed_);
    if (result.status != IoStatus::ok) return result;
    delayed_begin_ = 0;
    delayed_end_ = result.bytes;
    due_ = clock_.now() + impairment_.delay;
  }
  if (clock_.now() < due_) return {IoStatus::would_block, 0, 0};
  const size_t bytes = std::min(buffer.size(), delayed_end_ - delayed_begin_);
  if (bytes == 0) return {IoStatus::would_block, 0, 0};
  std::copy_n(delayed_.begin() + static_cast<std::ptrdiff_t>(delayed_begin_), bytes,
              buffer.begin());
  delayed_begin_ += bytes;
  return {IoStatus::ok, bytes, 0};
}

void ImpairedStream::corrupt(Bytes received) {
  if (const auto at = impairment_.corrupt_at;
      at && *at >= offset_ && *at - offset_ < received.size()) {
    received[*at - offset_] ^= std::byte{1};
  }
  if (impairment_.corrupt <= 0) return;
  for (std::byte& byte : received) {
    // Two numbers a byte, whatever the outcome: the change depends on the offset alone.
    const bool strikes = corruption_.chance(impairment_.corrupt);
    const auto change = static_cast<uint8_t>(1 + corruption_.next() % 255);
    if (strikes) byte ^= std::byte{change};
  }
}

}  // namespace diwarp::llp
