// SPDX-License-Identifier: Apache-2.0
#include "llp/capture/captured_stream.h"

#include <algorithm>
#include <array>

namespace diwarp::llp {
namespace {

WallTime now() { return std::chrono::system_clock::now(); }

/// Cuts the front of a list of pieces off, a packet's worth at a time.
class PieceCutter {
 public:
  explicit PieceCutter(std::span<const ConstBytes> pieces) : rest_(pieces) {}

  /// The next pieces, no more than `most` bytes of them; lives until the next call.
  std::span<const ConstBytes> next(size_t most) {
    size_t count = 0;
    while (most > 0 && !rest_.empty() && count < cut_.size()) {
      const ConstBytes piece = rest_.front().subspan(offset_);
      const ConstBytes part = piece.first(std::min(most, piece.size()));
      cut_[count++] = part;
      most -= part.size();
      offset_ += part.size();
      if (part.size() == piece.size()) advance();
    }
    return {cut_.data(), count};
  }

 private:
  void advance() {
    rest_ = rest_.subspan(1);
    offset_ = 0;
  }

  std::span<const ConstBytes> rest_;
  size_t offset_ = 0;
  std::array<ConstBytes, 64> cut_;
};

size_t size_of(std::span<const ConstBytes> pieces) {
  size_t total = 0;
  for (const ConstBytes piece : pieces) total += piece.size();
  return total;
}

}  // namespace

CapturedConnection::CapturedConnection(Capture& capture, const Address& local, const Address& peer)
    : capture_(capture), local_(local), peer_(peer) {}

/// Either side may have connected: this one is shown as the one that did.
void CapturedConnection::begin() {
  const WallTime at = now();
  const auto handshake = [&](Direction direction, TcpFields fields) {
    const bool out = direction == Direction::outbound;
    capture_.add(at, direction,
                 {.from = out ? local_ : peer_, .to = out ? peer_ : local_, .tcp = &fields});
  };
  handshake(Direction::outbound, {.flags = kTcpSyn});
  handshake(Direction::inbound, {.acknowledgement = 1, .flags = kTcpSyn | kTcpAck});
  sent_ = received_ = 1;
  segment(at, Direction::outbound, kTcpAck, {}, 0);
}

void CapturedConnection::data(WallTime at, Direction direction, std::span<const ConstBytes> pieces,
                              size_t bytes) {
  PieceCutter cutter(pieces);
  while (bytes > 0) {
    const auto part = cutter.next(std::min(bytes, kMostTcpPayload));
    const size_t size = size_of(part);
    if (size == 0) return;
    segment(at, direction, kTcpPsh | kTcpAck, part, size);
    bytes -= size;
  }
}

void CapturedConnection::control(Direction direction, uint8_t flags) {
  if (ended_) return;
  segment(now(), direction, flags | kTcpAck, {}, 0);
  ended_ = (flags & kTcpRst) != 0;
}

void CapturedConnection::segment(WallTime at, Direction direction, uint8_t flags,
                                 std::span<const ConstBytes> pieces, size_t bytes) {
  const bool out = direction == Direction::outbound;
  uint32_t& own = out ? sent_ : received_;
  const TcpFields fields = {
      .sequence = own, .acknowledgement = out ? received_ : sent_, .flags = flags};
  capture_.add(
      at, direction,
      {.from = out ? local_ : peer_, .to = out ? peer_ : local_, .tcp = &fields, .pieces = pieces});
  own += static_cast<uint32_t>(bytes) + ((flags & kTcpFin) != 0 ? 1 : 0);
}

IoResult CapturedStream::send(std::span<const ConstBytes> pieces) {
  const WallTime at = now();
  return note_sent(at, pieces, inner().send(pieces));
}

IoResult CapturedStream::send_zero_copy(std::span<const ConstBytes> pieces) {
  const WallTime at = now();
  return note_sent(at, pieces, inner().send_zero_copy(pieces));
}

IoResult CapturedStream::note_sent(WallTime at, std::span<const ConstBytes> pieces,
                                   IoResult result) {
  if (result.status == IoStatus::ok)
    connection_.data(at, Direction::outbound, pieces, result.bytes);
  return result;
}

IoResult CapturedStream::receive(Bytes buffer) {
  return note_received(std::span(&buffer, 1), inner().receive(buffer));
}

IoResult CapturedStream::receive_into(std::span<const Bytes> buffers) {
  return note_received(buffers, inner().receive_into(buffers));
}

IoResult CapturedStream::note_received(std::span<const Bytes> buffers, IoResult result) {
  size_t left = result.status == IoStatus::ok ? result.bytes : 0;
  for (const Bytes buffer : buffers) {
    const ConstBytes part = buffer.first(std::min(left, buffer.size()));
    connection_.data(now(), Direction::inbound, std::span(&part, 1), part.size());
    left -= part.size();
  }
  const bool over = result.status == IoStatus::closed || result.status == IoStatus::failed;
  if (over && !std::exchange(end_noted_, true))
    connection_.control(Direction::inbound, result.status == IoStatus::closed ? kTcpFin : kTcpRst);
  return result;
}

void CapturedStream::shutdown_send() {
  connection_.control(Direction::outbound, kTcpFin);
  inner().shutdown_send();
}

void CapturedStream::abort() {
  connection_.control(Direction::outbound, kTcpRst);
  inner().abort();
}

std::unique_ptr<Stream> capture_stream(std::unique_ptr<Stream> inner, Capture& capture) {
  CapturedConnection connection(capture, inner->local_address(), inner->peer_address());
  connection.begin();
  return std::make_unique<CapturedStream>(std::move(inner), connection);
}

}  // namespace diwarp::llp
