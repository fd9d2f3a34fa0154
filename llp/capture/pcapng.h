// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/bytes.h"

/// Blocks of the pcapng file format (draft-ietf-opsawg-pcapng), in the byte order of this host.
namespace diwarp::llp {

/// Writes one block into memory that is large enough: its type and length, fields and options, each
/// padded to four bytes, and the length again.
class PcapngBlock {
 public:
  PcapngBlock(Bytes target, uint32_t type) : target_(target) {
    put(type);
    put(uint32_t{0});  // the length, known at the end
  }
  template <class Field>
  void put(Field value) {
    std::memcpy(target_.data() + size_, &value, sizeof value);
    size_ += sizeof value;
  }
  /// Room for `size` bytes that the caller fills in, and zeros up to the next multiple of four.
  Bytes room(size_t size) {
    const Bytes space = target_.subspan(size_, size);
    while (size % 4 != 0) target_[size_ + size++] = std::byte{0};
    size_ += size;
    return space;
  }
  void option(uint16_t code, ConstBytes value) {
    put(code);
    put(static_cast<uint16_t>(value.size()));
    if (!value.empty()) std::memcpy(room(value.size()).data(), value.data(), value.size());
  }
  void option(uint16_t code, std::string_view text) {
    option(code, std::as_bytes(std::span(text)));
  }
  template <class Value>
  void option_of(uint16_t code, Value value) {
    option(code, std::as_bytes(std::span(&value, 1)));
  }
  /// Ends the block; returns its size in bytes.
  size_t finish() {
    const auto length = static_cast<uint32_t>(size_ + sizeof(uint32_t));
    put(length);
    std::memcpy(target_.data() + sizeof(uint32_t), &length, sizeof length);
    return size_;
  }

 private:
  const Bytes target_;
  size_t size_ = 0;
};

/// All that a block has besides the bytes of its packet: an upper bound.
inline constexpr size_t kPacketBlockOverhead = 64;
/// Enough for each of the other blocks, as their texts are no longer than kLongestBlockText.
inline constexpr size_t kOtherBlock = 256;
inline constexpr size_t kLongestBlockText = 100;

/// The type of a packet's block.
inline constexpr uint32_t kEnhancedPacket = 6;

enum class Direction : uint32_t { inbound = 1, outbound = 2 };

using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

/// Whether a file that begins with these bytes, four of them, is one of this format.
bool is_pcapng(ConstBytes begin);
/// The length of the first of some blocks, or 0 where it is not there to its end.
size_t whole_block(ConstBytes blocks);
/// The interface of a packet's block; nothing for one of another kind.
std::optional<uint32_t> interface_of_packet(ConstBytes block);
/// The begin of a file.
size_t section_header(Bytes target, std::string_view program);
/// An interface whose packets begin with an IP header, with times in nanoseconds.
size_t interface_description(Bytes target, std::string_view name);
/// How many packets of the interface were taken, and how many left out.
size_t interface_statistics(Bytes target, uint32_t interface, WallTime at, uint64_t taken,
                            uint64_t dropped);

/// The block of one packet of `size` bytes, which `compose` fills in. Returns the block's size.
template <class Compose>
size_t packet_block(Bytes target, uint32_t interface, WallTime at, Direction direction, size_t size,
                    Compose&& compose) {
  constexpr uint16_t kFlags = 2;
  const auto time = static_cast<uint64_t>(at.time_since_epoch().count());
  PcapngBlock block(target, kEnhancedPacket);
  block.put(interface);
  block.put(static_cast<uint32_t>(time >> 32));
  block.put(static_cast<uint32_t>(time));
  block.put(static_cast<uint32_t>(size));  // kept
  block.put(static_cast<uint32_t>(size));  // in all
  compose(block.room(size));
  block.option_of(kFlags, static_cast<uint32_t>(direction));
  block.option(0, ConstBytes{});
  return block.finish();
}

}  // namespace diwarp::llp
