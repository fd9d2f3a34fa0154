// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "dgram/rd_header.h"
#include "rdmap/datagram.h"

namespace diwarp::test {

/// Datagrams of every kind from a seed: the same seed makes the same datagrams everywhere.
class DatagramMaker {
 public:
  explicit DatagramMaker(uint64_t seed) : random_(seed) {}

  /// One that a receiver accepts.
  std::vector<std::byte> valid();

  /// A valid one with a fault planted: bits flipped, cut, made longer, a word of its headers
  /// replaced by a number at some bound, or all of its headers random. Half of the time with the
  /// CRC that goes with the new bytes, so that the checks after that of the CRC see it.
  std::vector<std::byte> damaged();

  bool chance(uint32_t percent) { return below(100) < percent; }

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }
  /// Any number, more often one beside a power of two or a bound of the format.
  uint32_t number();
  uint64_t number64() { return uint64_t{number()} << 32 | number(); }
  std::vector<std::byte> bytes(size_t count);

  rdmap::DatagramSegment segment();
  rdmap::DatagramSegment send();
  rdmap::DatagramSegment write_record();
  rdmap::DatagramSegment read_request();
  rdmap::DatagramSegment read_response();
  dgram::Challenge challenge();

  std::vector<std::byte> control();
  std::vector<std::byte> error();
  std::vector<std::byte> reliable();
  dgram::RdHeader rd_header(dgram::RdKind kind);
  std::vector<std::byte> rd_content(dgram::RdKind kind);
  std::vector<std::byte> rd_data();

  void flip_bits(std::vector<std::byte>& datagram);
  void change_length(std::vector<std::byte>& datagram);
  void replace_word(std::vector<std::byte>& datagram);

  std::mt19937_64 random_;
  std::vector<std::byte> payload_;
};

}  // namespace diwarp::test
