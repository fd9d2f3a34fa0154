// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "fuzz/ulpdu.h"
#include "llp/stream.h"
#include "mpa/fpdu.h"

namespace diwarp::fuzz {

/// The peer's end of a connection: puts ULPDUs into FPDUs, and checks those that diwarp sends.
class FpduStream {
 public:
  struct Framing {
    bool crc = true;
    bool marks = false;         ///< what the peer sends has markers
    bool target_marks = false;  ///< what diwarp sends has
  };

  FpduStream(std::unique_ptr<llp::Stream> stream, const Framing& framing);

  /// An FPDU is appended to what waits; with one bit wrong, `spoil` bytes from its beginning,
  /// unless that is 0.
  void add(const ByteList& ulpdu, size_t spoil = 0);
  void add_raw(const ByteList& bytes);
  /// Gives as much to the stream as that and as it takes.
  void push(size_t most);
  /// The bytes that wait, which are then the caller's.
  ByteList take_waiting() { return std::exchange(waiting_, {}); }
  size_t waiting() const { return waiting_.size(); }

  /// Takes what has come: each ULPDU once it is whole.
  void listen(const std::function<void(std::span<const std::byte>)>& take);
  void end_sending();
  void reset();
  void close() { stream_.reset(); }
  bool crc() const { return framing_.crc; }

 private:
  void receive();
  size_t take_front(std::span<const std::byte> front,
                    const std::function<void(std::span<const std::byte>)>& take);

  std::unique_ptr<llp::Stream> stream_;
  const Framing framing_;
  mpa::Deframer deframer_;  // of what diwarp sends
  uint64_t position_ = 0;   // of the stream that the peer sends
  ByteList waiting_;
  ByteList heard_;
};

}  // namespace diwarp::fuzz
