// SPDX-License-Identifier: Apache-2.0
#include "stat/block.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

namespace diwarp::tools {
namespace {

using counters_block::Entry;
using counters_block::Header;
using counters_block::Kind;

constexpr size_t kPreamble = offsetof(Header, process);  // what all layouts have in common
constexpr const char* kMalformed = "are malformed: the process has overwritten them";

[[noreturn]] void refuse_cut(size_t bytes) {
  throw BadBlock("are cut: there are no more than " + std::to_string(bytes) + " bytes");
}

/// `offset` + sizeof(T) lies within the bytes.
template <class T>
T read(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <size_t N>
std::string_view text_of(const std::array<char, N>& place) {
  return {place.data(), ::strnlen(place.data(), N)};
}

void check_preamble(std::span<const std::byte> bytes) {
  if (bytes.size() < kPreamble) refuse_cut(bytes.size());
  if (read<decltype(Header::magic)>(bytes, 0) != counters_block::kMagic)
    throw BadBlock("do not begin as counters do");
  const auto layout = read<uint32_t>(bytes, offsetof(Header, layout));
  if (layout != counters_block::kLayout)
    throw BadBlock("are of another version of diwarp (layout " + std::to_string(layout) +
                   ", here " + std::to_string(counters_block::kLayout) +
                   "): use the diwarp-stat of that");
}

/// Everything that the header says lies within the bytes. Nothing here can overflow.
void check_header(const Header& header, size_t bytes) {
  if (header.bytes > bytes) refuse_cut(bytes);
  const uint64_t table_end = uint64_t{header.table} + uint64_t{header.entries} * sizeof(Entry);
  if (header.table < sizeof(Header) || table_end > header.bytes) throw BadBlock(kMalformed);
}

bool is_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Value value_of(const Entry& entry, std::span<const std::byte> bytes) {
  const std::string_view name = text_of(entry.name);
  const bool known = entry.kind == Kind::sum || entry.kind == Kind::gauge;
  const uint64_t end = uint64_t{entry.offset} + sizeof(uint64_t);
  if (!is_name(name) || !known || end > bytes.size()) throw BadBlock(kMalformed);
  return {
      .name = std::string(name), .kind = entry.kind, .value = read<uint64_t>(bytes, entry.offset)};
}

}  // namespace

uint64_t DeviceSnapshot::get(std::string_view name) const {
  const auto found = std::ranges::find(values, name, &Value::name);
  return found == values.end() ? 0 : found->value;
}

std::string printable(std::string_view text) {
  std::string shown(text);
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

DeviceSnapshot parse_block(std::span<const std::byte> bytes) {
  check_preamble(bytes);
  if (bytes.size() < sizeof(Header)) refuse_cut(bytes.size());
  const auto header = read<Header>(bytes, 0);
  check_header(header, bytes.size());
  DeviceSnapshot snapshot{.process = header.process,
                          .number = header.device,
                          .opened = header.opened,
                          .library = printable(text_of(header.library)),
                          .address = printable(text_of(header.address)),
                          .values = {}};
  std::set<std::string> names;
  for (uint32_t i = 0; i < header.entries; ++i) {
    const auto entry = read<Entry>(bytes, header.table + i * sizeof(Entry));
    snapshot.values.push_back(value_of(entry, bytes.first(header.bytes)));
    if (!names.insert(snapshot.values.back().name).second) throw BadBlock(kMalformed);
  }
  return snapshot;
}

}  // namespace diwarp::tools
