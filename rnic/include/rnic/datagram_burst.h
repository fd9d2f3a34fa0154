// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "llp/datagram.h"

namespace diwarp::rnic {

/// Room for one burst of outgoing datagrams: headers, trailers and the pieces that point to them and
/// to the payload. The engine owns one and lends it to the queue pair that transmits.
class DatagramBurst {
 public:
  static constexpr size_t kMaxDatagrams = 64;  // what one UDP_SEGMENT call can carry
  static constexpr size_t kMaxPieces = 1024;   // UIO_MAXIOV
  static constexpr size_t kHeaderBytes = 48;
  static constexpr size_t kTrailerBytes = 4;

  /// What a sent datagram means for the message it belongs to.
  struct Mark {
    uint64_t end = 0;   ///< offset in the message behind this datagram's payload
    bool last = false;  ///< the message is done
  };

  void clear() { datagrams_ = pieces_ = 0; }
  bool full() const { return datagrams_ == kMaxDatagrams; }
  size_t size() const { return datagrams_; }
  std::span<const llp::OutgoingDatagram> datagrams() const { return {outgoing_.data(), datagrams_}; }
  const Mark& mark(size_t index) const { return marks_[index]; }

  /// Room for the next datagram's header and trailer.
  Bytes header() { return headers_[datagrams_]; }
  Bytes trailer() { return trailers_[datagrams_]; }
  /// Room for its payload's pieces, which leaves one before for the header and one after.
  std::span<ConstBytes> payload_pieces() {
    const size_t used = pieces_ + 1;
    return used + 1 >= kMaxPieces ? std::span<ConstBytes>()
                                  : std::span(gathered_).subspan(used, kMaxPieces - used - 1);
  }

  /// Adds the datagram whose parts have been put into the rooms above.
  void add(const Address& to, size_t header_bytes, size_t payload_pieces, Mark mark) {
    const size_t count = payload_pieces + 2;
    gathered_[pieces_] = Bytes(headers_[datagrams_]).first(header_bytes);
    gathered_[pieces_ + count - 1] = trailers_[datagrams_];
    outgoing_[datagrams_] = {to, std::span(gathered_).subspan(pieces_, count)};
    marks_[datagrams_] = mark;
    pieces_ += count;
    ++datagrams_;
  }

 private:
  size_t datagrams_ = 0;
  size_t pieces_ = 0;
  std::array<std::array<std::byte, kHeaderBytes>, kMaxDatagrams> headers_;
  std::array<std::array<std::byte, kTrailerBytes>, kMaxDatagrams> trailers_;
  std::array<ConstBytes, kMaxPieces> gathered_;
  std::array<llp::OutgoingDatagram, kMaxDatagrams> outgoing_;
  std::array<Mark, kMaxDatagrams> marks_;
};

}  // namespace diwarp::rnic
