// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

/// How the counters of a device lie in shared memory, for the library, which writes them, and for
/// diwarp-stat. All numbers are the machine's own. The block describes itself: a table gives the
/// name, kind and place of each value, so that a reader knows nothing of one library's counters.
namespace diwarp::counters_block {

/// A sealed memfd of this name, among the descriptors of the process that has the device.
inline constexpr const char* kFileName = "diwarp-counters";
inline constexpr std::array<char, 8> kMagic = {'d', 'i', 'w', 'a', 'r', 'p', 'C', 'B'};
/// Of the header and of the table. Those of another layout have the same first 16 bytes.
inline constexpr uint32_t kLayout = 1;
/// A reader takes no longer block for one.
inline constexpr uint32_t kByteLimit = 64U << 10U;

struct Header {
  std::array<char, 8> magic;  // written last
  uint32_t layout;
  uint32_t bytes;    // of the block
  uint32_t process;  // its number in its own namespace
  uint32_t device;   // the process's first is 1
  uint32_t entries;  // of the table
  uint32_t table;    // where it begins
  uint64_t opened;   // CLOCK_BOOTTIME, ns
  std::array<char, 16>
      library;  // the library's version; texts end with a zero, or fill their place
  std::array<char, 64> address;  // of the device
};
static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) == 120);
static_assert(offsetof(Header, layout) == 8 && offsetof(Header, bytes) == 12);

enum class Kind : uint32_t { sum = 0, gauge = 1 };

struct Entry {
  std::array<char, 40> name;  // of a-z, 0-9 and _
  uint32_t offset;            // of the value, 64 bits, from the start of the block
  Kind kind;
};
static_assert(std::is_trivially_copyable_v<Entry> && sizeof(Entry) == 48);

}  // namespace diwarp::counters_block
