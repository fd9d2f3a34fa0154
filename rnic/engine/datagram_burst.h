// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "dgram/envelope.h"
#include "llp/datagram_link.h"

namespace diwarp::rnic {

class DatagramSource;

/// The meaning of a datagram to the source that added it.
struct DatagramTag {
  DatagramSource* source = nullptr;
  uint64_t value = 0;      ///< the source's own, for example the offset after the payload
  bool last = false;       ///< the source's own, for example the end of a message
  void* object = nullptr;  ///< the source's own
};

/// Room for one burst of outgoing datagrams: headers, trailers and the pieces that point to them
/// and to the payload. The engine owns one and lends it to the queue pair that transmits. A
/// datagram's trailer lies right before the next one's header, so that both leave as one piece.
class DatagramBurst {
 public:
  // Two whole trains (UDP_SEGMENT) of 44 datagrams of 1,472 bytes, what Ethernet carries over IPv4:
  // a burst that ends within a train has the next one begin with a short one. More at once overruns
  // small receive buffers, and is no faster.
  static constexpr size_t kMaxDatagrams = 88;
  // A burst that reaches so many bytes ends, so that the engine receives in between.
  static constexpr size_t kMaxBytes = kMaxDatagrams * 1472;
  static constexpr size_t kMaxPieces = 1024;  // UIO_MAXIOV
  // The prefix, and the longest that follows it besides payload: an Error, or an acknowledgement.
  static constexpr size_t kHeaderBytes = dgram::Envelope::kPrefixBytes + 536;
  static constexpr size_t kTrailerBytes = dgram::Envelope::kTrailerBytes;
  static constexpr size_t kSourceDataBytes = 64;
  // A lone piece of payload up to this is copied: one piece costs the link, and the CRC, less than
  // three. So much follows usual headers without fewer datagrams finding room.
  static constexpr size_t kCopiedBytes = 96;
  // Of all headers and trailers: as many as there may be, of a usual length, and a long one.
  static constexpr size_t kEndsBytes = kMaxDatagrams * 164 + kHeaderBytes + kTrailerBytes;

  /// The notes of a source about a datagram until it is told the outcome.
  struct alignas(uint64_t) SourceData {
    std::array<std::byte, kSourceDataBytes> bytes;
  };

  void clear() {
    datagrams_ = pieces_ = used_ = bytes_ = 0;
    full_ = false;
    sealer_.clear();
  }
  /// No other datagram fits, not even one without payload.
  bool full() const { return full_; }
  size_t size() const { return datagrams_; }
  /// Of all datagrams.
  size_t bytes() const { return bytes_; }
  std::span<const llp::OutgoingDatagram> datagrams() const {
    return {outgoing_.data(), datagrams_};
  }
  const DatagramTag& tag(size_t index) const { return tags_[index]; }

  /// One for each datagram that the burst may hold.
  SourceData* source_data() { return source_data_.data(); }

  /// Room for the next datagram's header, and for the trailer of one with so long a header.
  Bytes header() { return Bytes(ends_).subspan(used_, kHeaderBytes); }
  Bytes trailer(size_t header_bytes) {
    return Bytes(ends_).subspan(used_ + header_bytes, kTrailerBytes);
  }
  /// Room for its payload's pieces, which leaves one before for the header and one after.
  std::span<ConstBytes> payload_pieces() {
    const size_t used = pieces_ + 1;
    return used + 1 >= kMaxPieces ? std::span<ConstBytes>()
                                  : std::span(gathered_).subspan(used, kMaxPieces - used - 1);
  }

  /// Has the payload that is one short piece follow its header of so many bytes. Returns how many
  /// bytes it then has; as many as before where the payload is not such a piece.
  size_t join_payload(size_t header_bytes, std::span<const ConstBytes> payload) {
    if (payload.size() != 1 || payload.front().size() > kCopiedBytes) return header_bytes;
    std::memcpy(header().data() + header_bytes, payload.front().data(), payload.front().size());
    return header_bytes + payload.front().size();
  }
  /// Seals what is about to be added.
  dgram::Envelope::Sealer& sealer() { return sealer_; }
  /// Adds the datagram of `bytes` whose parts have been put into the rooms above. Without pieces of
  /// payload it is one piece. Not when full().
  void add(const llp::Destination& to, size_t header_bytes, size_t payload_pieces, size_t bytes,
           const DatagramTag& tag) {
    ConstBytes* const first = &gathered_[pieces_];
    size_t count = 1;
    if (payload_pieces == 0) {
      *first = header().first(header_bytes + kTrailerBytes);
    } else {
      count = payload_pieces + 2;
      *first = header().first(header_bytes);
      first[count - 1] = trailer(header_bytes);
    }
    used_ += header_bytes + kTrailerBytes;
    bytes_ += bytes;
    outgoing_[datagrams_] = {to.address, {first, count}, to.local};
    tags_[datagrams_] = tag;
    pieces_ += count;
    ++datagrams_;
    full_ = is_full();
  }

 private:
  bool is_full() const {
    // guard(burst-pieces): without || pieces_ + 2 > kMaxPieces
    return datagrams_ == kMaxDatagrams || bytes_ >= kMaxBytes || pieces_ + 2 > kMaxPieces ||
           used_ + kHeaderBytes + kTrailerBytes > kEndsBytes;
  }

  size_t datagrams_ = 0;
  size_t pieces_ = 0;
  size_t used_ = 0;                         // of ends_
  size_t bytes_ = 0;                        // of all datagrams
  std::array<std::byte, kEndsBytes> ends_;  // as they go
  std::array<ConstBytes, kMaxPieces> gathered_;
  std::array<llp::OutgoingDatagram, kMaxDatagrams> outgoing_;
  std::array<DatagramTag, kMaxDatagrams> tags_;
  std::array<SourceData, kMaxDatagrams> source_data_;
  bool full_ = false;
  // The last datagram may go beyond kMaxBytes.
  [[no_unique_address]] dgram::Envelope::Sealer sealer_{kMaxBytes + llp::kMaxDatagram};
};

}  // namespace diwarp::rnic
