// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fpdu_stream.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "fuzz/input.h"

namespace diwarp::fuzz {
namespace {

constexpr size_t kReadAtOnce = size_t{64} << 10;

constexpr size_t kMarkerSpacing = 512;

/// Writes one FPDU (RFC 5044 section 4).
class FpduWriter {
 public:
  /// With markers if there is a `position`: the bytes of the stream before this FPDU.
  explicit FpduWriter(std::optional<uint64_t> position) : position_(position) {}

  ByteList write(const ByteList& ulpdu, bool crc) {
    ByteList length;
    test::append(length, ulpdu.size(), 2);
    put(length);
    start_ = out_.size() - length.size();
    put(ulpdu);
    put(ByteList((4 - (length.size() + ulpdu.size()) % 4) % 4));
    mark_if_due();  // the CRC covers it
    if (crc)
      test::append_crc(out_);
    else
      test::append(out_, 0, 4);
    return std::move(out_);
  }

 private:
  void put(const ByteList& bytes) {
    for (const std::byte byte : bytes) {
      mark_if_due();
      out_.push_back(byte);
    }
  }
  /// A marker points back to the length field, before which it points nowhere.
  void mark_if_due() {
    if (!position_ || (*position_ + out_.size()) % kMarkerSpacing != 0) return;
    const size_t back = start_ ? out_.size() - *start_ : 0;
    test::append(out_, 0, 2);
    test::append(out_, back, 2);
  }

  const std::optional<uint64_t> position_;
  std::optional<size_t> start_;  // of the length field
  ByteList out_;
};

/// By another implementation of the CRC than diwarp's.
void check_crc(std::span<const std::byte> fpdu) {
  const uint32_t crc = test::castagnoli(fpdu.first(fpdu.size() - 4));
  for (size_t i = 0; i < 4; ++i)
    require(fpdu[fpdu.size() - 4 + i] == static_cast<std::byte>(crc >> 8 * i),
            "an FPDU with a wrong CRC was sent");
}

}  // namespace

FpduStream::FpduStream(std::unique_ptr<llp::Stream> stream, const Framing& framing)
    : stream_(std::move(stream)), framing_(framing), deframer_(framing.crc, framing.target_marks) {}

void FpduStream::add(const ByteList& ulpdu, size_t spoil) {
  const auto position = framing_.marks ? std::optional(position_) : std::nullopt;
  ByteList fpdu = FpduWriter(position).write(ulpdu, framing_.crc);
  if (spoil != 0) fpdu[spoil % fpdu.size()] ^= std::byte{0x10};
  add_raw(fpdu);
}

void FpduStream::add_raw(const ByteList& bytes) {
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  position_ += bytes.size();
}

void FpduStream::push(size_t most) {
  if (!stream_) return waiting_.clear();
  if (waiting_.empty()) return;
  const ConstBytes piece = ConstBytes(waiting_).first(std::min(most, waiting_.size()));
  const llp::IoResult result = stream_->send({&piece, 1});
  if (result.status == llp::IoStatus::failed) waiting_.clear();
  if (result.status != llp::IoStatus::ok) return;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(result.bytes));
}

void FpduStream::receive() {
  static std::array<std::byte, kReadAtOnce> buffer;
  while (stream_) {
    const llp::IoResult result = stream_->receive(buffer);
    if (result.status != llp::IoStatus::ok) return;
    heard_.insert(heard_.end(), buffer.begin(),
                  buffer.begin() + static_cast<ptrdiff_t>(result.bytes));
  }
}

/// Returns the bytes of the FPDU at the front; 0 where it is not whole.
size_t FpduStream::take_front(std::span<const std::byte> front,
                              const std::function<void(std::span<const std::byte>)>& take) {
  const mpa::Deframed framed = deframer_.next(front);
  require(framed.status != mpa::DeframeStatus::bad_crc, "an FPDU with a wrong CRC was sent");
  require(framed.status != mpa::DeframeStatus::bad_marker, "a wrong marker was sent");
  if (framed.status == mpa::DeframeStatus::incomplete) return 0;
  if (framing_.crc) check_crc(front.first(framed.consumed));
  deframer_.step(framed.consumed);
  take(framed.ulpdu);
  return framed.consumed;
}

void FpduStream::listen(const std::function<void(std::span<const std::byte>)>& take) {
  receive();
  size_t taken = 0;
  while (const size_t bytes = take_front(std::span(heard_).subspan(taken), take)) taken += bytes;
  heard_.erase(heard_.begin(), heard_.begin() + static_cast<ptrdiff_t>(taken));
}

void FpduStream::end_sending() {
  if (stream_) stream_->shutdown_send();
}

void FpduStream::reset() {
  if (stream_) stream_->abort();
}

}  // namespace diwarp::fuzz
