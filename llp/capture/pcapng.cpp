// SPDX-License-Identifier: Apache-2.0
#include "llp/capture/pcapng.h"

#include <cstring>

namespace diwarp::llp {
namespace {

constexpr uint32_t kSectionHeader = 0x0A0D0D0A;
constexpr uint32_t kInterfaceDescription = 1;
constexpr uint32_t kInterfaceStatistics = 5;

constexpr uint16_t kEndOfOptions = 0;

// Before what a block holds: its type and its length, and in a packet's then its interface.
constexpr size_t kLengthOffset = 4;
constexpr size_t kInterfaceOffset = 8;

uint32_t word_at(ConstBytes bytes, size_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

void end_options(PcapngBlock& block) { block.option(kEndOfOptions, ConstBytes{}); }

}  // namespace

bool is_pcapng(ConstBytes begin) {
  uint32_t type = 0;
  if (begin.size() != sizeof type) return false;
  std::memcpy(&type, begin.data(), sizeof type);
  return type == kSectionHeader;
}

size_t whole_block(ConstBytes blocks) {
  if (blocks.size() < kInterfaceOffset) return 0;
  const size_t length = word_at(blocks, kLengthOffset);
  return length <= blocks.size() ? length : 0;
}

std::optional<uint32_t> interface_of_packet(ConstBytes block) {
  if (word_at(block, 0) != kEnhancedPacket) return std::nullopt;
  return word_at(block, kInterfaceOffset);
}

size_t section_header(Bytes target, std::string_view program) {
  constexpr uint16_t kUserApplication = 4;
  PcapngBlock block(target, kSectionHeader);
  block.put(uint32_t{0x1A2B3C4D});  // tells the byte order
  block.put(uint16_t{1});           // version 1.0
  block.put(uint16_t{0});
  block.put(~uint64_t{0});  // the section's length is not told
  block.option(kUserApplication, program.substr(0, kLongestBlockText));
  end_options(block);
  return block.finish();
}

size_t interface_description(Bytes target, std::string_view name) {
  constexpr uint16_t kRawIp = 101;  // LINKTYPE_RAW
  constexpr uint16_t kName = 2;
  constexpr uint16_t kTimeResolution = 9;
  PcapngBlock block(target, kInterfaceDescription);
  block.put(kRawIp);
  block.put(uint16_t{0});
  block.put(uint32_t{0});  // packets are never cut
  block.option(kName, name.substr(0, kLongestBlockText));
  block.option_of(kTimeResolution, uint8_t{9});
  end_options(block);
  return block.finish();
}

size_t interface_statistics(Bytes target, uint32_t interface, WallTime at, uint64_t taken,
                            uint64_t dropped) {
  constexpr uint16_t kReceived = 4;
  constexpr uint16_t kDropped = 5;
  const auto time = static_cast<uint64_t>(at.time_since_epoch().count());
  PcapngBlock block(target, kInterfaceStatistics);
  block.put(interface);
  block.put(static_cast<uint32_t>(time >> 32));
  block.put(static_cast<uint32_t>(time));
  block.option_of(kReceived, taken);
  block.option_of(kDropped, dropped);
  end_options(block);
  return block.finish();
}

}  // namespace diwarp::llp
