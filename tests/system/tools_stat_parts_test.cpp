// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/shared_counters.h"
#include "base/unique_fd.h"
#include "stat/block.h"
#include "stat/figures.h"
#include "stat/output.h"
#include "stat/sample.h"
#include "stat/screen.h"
#include "stat/table.h"
#include "support/catch.h"

namespace diwarp::tools {
namespace {

using counters_block::Entry;
using counters_block::Header;
using counters_block::Kind;

/// A block with values that a test may spoil.
struct Made {
  Header header{.magic = counters_block::kMagic,
                .layout = counters_block::kLayout,
                .bytes = 0,
                .process = 7,
                .device = 1,
                .entries = 0,
                .table = sizeof(Header),
                .opened = 1,
                .library = {'0', '.', '1'},
                .address = {'1', '.', '2'}};
  std::vector<Entry> table = {};
  std::vector<uint64_t> values = {};

  Made& with(std::string_view name, uint64_t value, Kind kind = Kind::sum) {
    Entry entry{.name = {}, .offset = 0, .kind = kind};
    std::memcpy(entry.name.data(), name.data(), std::min(name.size(), entry.name.size()));
    table.push_back(entry);
    values.push_back(value);
    return *this;
  }
  /// Header and table as they would be in a whole block.
  Made& complete() {
    header.entries = static_cast<uint32_t>(table.size());
    const size_t first = sizeof header + table.size() * sizeof(Entry);
    for (size_t i = 0; i < table.size(); ++i)
      table[i].offset = static_cast<uint32_t>(first + i * sizeof(uint64_t));
    header.bytes = static_cast<uint32_t>(first + values.size() * sizeof(uint64_t));
    return *this;
  }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all;
    const auto add = [&](const void* from, size_t count) {
      const auto* const begin = static_cast<const std::byte*>(from);
      all.insert(all.end(), begin, begin + count);
    };
    add(&header, sizeof header);
    add(table.data(), table.size() * sizeof(Entry));
    add(values.data(), values.size() * sizeof(uint64_t));
    return all;
  }
};

Made two_values() {
  return Made().with("rx_bytes", 5).with("queue_pairs", 2, Kind::gauge).complete();
}

std::string refusal_of(std::span<const std::byte> bytes) {
  try {
    parse_block(bytes);
  } catch (const BadBlock& bad) {
    return bad.what();
  }
  return "";
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

UniqueFd file_with(std::span<const std::byte> bytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW) {
  UniqueFd file(::memfd_create(counters_block::kFileName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(file);
  REQUIRE(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  REQUIRE(::fcntl(file.get(), F_ADD_SEALS, seals) == 0);
  return file;
}

DeviceSample device_with(std::vector<Value> values, uint64_t opened = 0) {
  return {.process = 7,
          .program = "prog",
          .device = {.process = 7,
                     .number = 1,
                     .opened = opened,
                     .library = "0.1.0",
                     .address = "127.0.0.1",
                     .values = std::move(values)}};
}

constexpr uint64_t kSecond = 1'000'000'000;

}  // namespace

TEST_CASE("a block is read by its own table") {
  const DeviceSnapshot device = parse_block(two_values().bytes());
  CHECK(device.process == 7);
  CHECK(device.number == 1);
  CHECK(device.library == "0.1");
  CHECK(device.address == "1.2");
  REQUIRE(device.values.size() == 2);
  CHECK(device.get("rx_bytes") == 5);
  CHECK(device.get("queue_pairs") == 2);
  CHECK(device.values[1].kind == Kind::gauge);
  CHECK(device.get("unknown") == 0);
}

TEST_CASE("the block that the library makes is read, with names that this program does not know") {
  SharedCounters counters("127.0.0.1");
  counters.get().add(Counter::rx_datagrams, 9);
  Sample sample = take_sample({.processes = {::getpid()}});
  CHECK(sample.problems.empty());
  REQUIRE(sample.devices.size() == 1);
  CHECK(sample.devices[0].device.get("rx_datagrams") == 9);
  CHECK(sample.devices[0].device.address == "127.0.0.1");
  CHECK(parse_block(Made().with("future", 1).complete().bytes()).get("future") == 1);
}

TEST_CASE("a block that is cut anywhere is refused") {
  const std::vector<std::byte> whole = two_values().bytes();
  for (size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    // A copy of its own, so that AddressSanitizer sees a read beyond it.
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
    CHECK(has(refusal_of(cut), "are cut"));
  }
  CHECK(refusal_of(whole).empty());
}

TEST_CASE("a block of another version is refused as such, whatever follows") {
  Made made = two_values();
  made.header.layout = 9;
  made.header.table = 0xffffffff;
  std::vector<std::byte> bytes = made.bytes();
  CHECK(has(refusal_of(bytes), "another version of diwarp (layout 9"));
  bytes.resize(16);
  CHECK(has(refusal_of(bytes), "another version"));
}

TEST_CASE("what does not begin as a block is refused") {
  Made made = two_values();
  made.header.magic[3] = 'x';
  CHECK(has(refusal_of(made.bytes()), "do not begin"));
  CHECK(has(refusal_of(std::vector<std::byte>(100)), "do not begin"));
}

TEST_CASE("a block whose numbers lead outside is refused") {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  const auto spoiled = [](auto spoil) {
    Made made = two_values();
    spoil(made);
    return !refusal_of(made.bytes()).empty();
  };
  CHECK(spoiled([](Made& made) { made.header.bytes = kMost; }));
  CHECK(spoiled([](Made& made) { ++made.header.bytes; }));
  CHECK(spoiled([](Made& made) { --made.header.bytes; }));
  CHECK(spoiled([](Made& made) { made.header.bytes = 0; }));
  CHECK(spoiled([](Made& made) { made.header.entries = kMost; }));
  CHECK(spoiled([](Made& made) { ++made.header.entries; }));
  CHECK(spoiled([](Made& made) { made.header.entries = 0x10000000; }));
  CHECK(spoiled([](Made& made) { made.header.table = kMost; }));
  CHECK(spoiled([](Made& made) { made.header.table = 0; }));
  CHECK(spoiled([](Made& made) { made.header.table = sizeof(Header) - 1; }));
  CHECK(spoiled([](Made& made) { made.table[1].offset = kMost; }));
  CHECK(spoiled([](Made& made) { made.table[1].offset += 1; }));
  CHECK(spoiled([](Made& made) { made.table[1].kind = static_cast<Kind>(2); }));
}

TEST_CASE("a block with names that no counter has is refused") {
  const auto refused = [](std::string_view name) {
    return !refusal_of(Made().with(name, 1).complete().bytes()).empty();
  };
  for (const char* name : {"", "a b", "A", "a\"b", "a\n", "\033[2J", "\xff"}) {
    CAPTURE(name);
    CHECK(refused(name));
  }
  CHECK_FALSE(refused(std::string(40, 'a')));  // no zero at its end
  CHECK_FALSE(refusal_of(Made().with("a", 1).with("a", 2).complete().bytes()).empty());
}

TEST_CASE("texts of a block show nothing that moves a terminal's cursor") {
  Made made = two_values();
  made.header.address.fill('\033');
  made.header.library.fill('\xff');
  const DeviceSnapshot device = parse_block(made.bytes());
  CHECK(device.address == std::string(64, '?'));
  CHECK(device.library == std::string(16, '?'));
}

TEST_CASE("no bytes make reading a block do anything but refuse or read it") {
  std::minstd_rand random(1);
  const std::vector<std::byte> whole = two_values().bytes();
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes = whole;
    for (int i = 0; i < 3; ++i)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 256);
    refusal_of(bytes);
  }
}

TEST_CASE("a file that may be cut while it is read is refused") {
  const UniqueFd file = file_with(two_values().bytes(), F_SEAL_GROW);
  CHECK_THROWS_AS(read_counters(file.get()), BadBlock);
  CHECK(read_counters(file_with(two_values().bytes()).get()).get("rx_bytes") == 5);
}

TEST_CASE("files that are no counters are refused") {
  CHECK_THROWS_AS(read_counters(file_with({}).get()), BadBlock);
  CHECK_THROWS_AS(read_counters(file_with(std::vector<std::byte>(15)).get()), BadBlock);
  CHECK_THROWS_AS(read_counters(file_with(std::vector<std::byte>(1 << 20)).get()), BadBlock);
  const UniqueFd folder(::open("/", O_RDONLY | O_DIRECTORY));
  CHECK_THROWS_AS(read_counters(folder.get()), BadBlock);
  CHECK_THROWS_AS(read_counters(-1), BadBlock);
}

TEST_CASE("figures are sums over datagrams and RC") {
  const DeviceSample device = device_with({{"rx_datagrams", Kind::sum, 1},
                                           {"rc_rx_fpdus", Kind::sum, 2},
                                           {"tx_bytes", Kind::sum, 3},
                                           {"rc_tx_bytes", Kind::sum, 4},
                                           {"drop_crc", Kind::sum, 5},
                                           {"drop_stag", Kind::sum, 0},
                                           {"rx_overflow", Kind::sum, 6},
                                           {"rc_crc_errors", Kind::sum, 7},
                                           {"completions", Kind::sum, 10},
                                           {"completions_polled", Kind::sum, 8}});
  const Figures figures = figures_of(device.device);
  CHECK(figures.packets_in == 3);
  CHECK(figures.bytes_out == 7);
  CHECK(figures.drops == 11);
  CHECK(figures.crc_errors == 12);
  CHECK(figures.waiting == 2);
  CHECK(drops_of(device.device) == Reasons{{"crc", 5}, {"rx_overflow", 6}});
}

TEST_CASE("rates are over the time between two samples, or since the device was opened") {
  const auto device = [](uint64_t packets, uint64_t work) {
    return device_with({{"rx_datagrams", Kind::sum, packets}, {"engine_work_ns", Kind::sum, work}},
                       1 * kSecond);
  };
  const Sample first{.now = 5 * kSecond, .devices = {device(400, kSecond)}};
  const Sample second{.now = 7 * kSecond, .devices = {device(500, 2 * kSecond)}};
  const Growth since_opened = growth_of(first.devices[0], first, nullptr);
  CHECK(since_opened.rate(&Figures::packets_in) == Catch::Approx(100));
  CHECK(since_opened.work_share() == Catch::Approx(0.25));
  const Growth since_first = growth_of(second.devices[0], second, &first);
  CHECK(since_first.rate(&Figures::packets_in) == Catch::Approx(50));
  CHECK(since_first.work_share() == Catch::Approx(0.5));
}

TEST_CASE("a device that counts backwards, or was opened in the future, has rates of 0") {
  const auto device = [](uint64_t packets) {
    return device_with({{"rx_datagrams", Kind::sum, packets}}, 9 * kSecond);
  };
  const Sample first{.now = 5 * kSecond, .devices = {device(400)}};
  const Sample second{.now = 6 * kSecond, .devices = {device(300)}};
  CHECK(growth_of(first.devices[0], first, nullptr).rate(&Figures::packets_in) == 0);
  CHECK(growth_of(second.devices[0], second, &first).rate(&Figures::packets_in) == 0);
}

TEST_CASE("compact numbers have four characters at most") {
  CHECK(compact(0) == "0");
  CHECK(compact(999) == "999");
  CHECK(compact(999.6) == "1.0K");
  CHECK(compact(1000) == "1.0K");
  CHECK(compact(9949) == "9.9K");
  CHECK(compact(9951) == "10K");
  CHECK(compact(999'499) == "999K");
  CHECK(compact(999'500) == "1.0M");
  CHECK(compact(1.8e19) == "18E");
  for (double number = 1; number < 1.8e19; number *= 1.01) CHECK(compact(number).size() <= 4);
}

TEST_CASE("no line of a table is longer than 80 characters, whatever the values") {
  std::vector<Value> values;
  for (int i = 0; i < 60; ++i)
    values.push_back({"drop_" + std::string(35, static_cast<char>('a' + i % 26)), Kind::sum,
                      std::numeric_limits<uint64_t>::max()});
  for (const char* name : {"rx_datagrams", "tx_bytes", "queue_pairs", "open_records",
                           "engine_work_ns", "completions", "rd_retransmitted"})
    values.push_back({name, Kind::sum, std::numeric_limits<uint64_t>::max()});
  DeviceSample device = device_with(values);
  device.process = std::numeric_limits<int32_t>::max() / 1000;
  device.program = std::string(15, 'p');
  device.device.address = std::string(64, 'f');
  const Sample sample{
      .now = kSecond,
      .devices = {device},
      .problems = {{1, std::string(200, 'x')}, {1, "many words " + std::string(90, 'y')}},
      .others_left_out = true};
  for (const bool rates : {false, true})
    for (const std::string& line : table_of(sample, nullptr, rates)) {
      CAPTURE(line);
      CHECK(line.size() <= kTableWidth);
    }
}

TEST_CASE("a table tells of every problem") {
  const Sample sample{.now = kSecond, .devices = {}, .problems = {{1, "Process 1 is odd."}}};
  const std::vector<std::string> lines = table_of(sample, nullptr, false);
  CHECK(lines.back() == "Process 1 is odd.");
  CHECK(has(prometheus_of(sample), "# Process 1 is odd.\n"));
  CHECK(has(json_of(sample, nullptr, -1), "Process 1 is odd."));
}

TEST_CASE("a program's name cannot leave its label") {
  DeviceSample device = device_with({{"rx_bytes", Kind::sum, 1}});
  device.program = "a\"b\\c";
  const std::string text = prometheus_of({.now = kSecond, .devices = {device}});
  CHECK(has(text, R"(program="a\"b\\c")"));
}

TEST_CASE("a device that is told of twice has one line of each metric") {
  const DeviceSample device = device_with({{"rx_bytes", Kind::sum, 1}});
  const std::string text = prometheus_of({.now = kSecond, .devices = {device, device}});
  const size_t first = text.find("diwarp_rx_bytes_total{");
  REQUIRE(first != std::string::npos);
  CHECK(text.find("diwarp_rx_bytes_total{", first + 1) == std::string::npos);
}

TEST_CASE("two names of a block that become one metric have one line of it") {
  const DeviceSample device = device_with({{"a_ns", Kind::sum, 1}, {"a_seconds", Kind::sum, 2}});
  const std::string text = prometheus_of({.now = kSecond, .devices = {device}});
  const size_t first = text.find("diwarp_a_seconds_total{");
  REQUIRE(first != std::string::npos);
  CHECK(text.find("diwarp_a_seconds_total{", first + 1) == std::string::npos);
}

TEST_CASE("a metric in seconds says so") {
  const DeviceSample device = device_with({{"engine_work_ns", Kind::sum, 1}});
  const std::string text = prometheus_of({.now = kSecond, .devices = {device}});
  CHECK(has(text, "# HELP diwarp_engine_work_seconds_total seconds of "));
}

TEST_CASE("lines that a terminal has no room for are counted") {
  const std::vector<std::string> lines = {"a", "b", "c", "d"};
  CHECK(fitting(lines, 4) == lines);
  CHECK(fitting(lines, 3) == std::vector<std::string>{"a", "b", "2 more lines"});
  CHECK(fitting(lines, 1) == std::vector<std::string>{"4 more lines"});
}

TEST_CASE("a metric has one type, even where two devices do not agree") {
  DeviceSample other = device_with({{"x", Kind::sum, 2}});
  other.process = 8;
  const Sample sample{.now = kSecond,
                      .devices = {device_with({{"x_total", Kind::gauge, 1}}), other}};
  const std::string text = prometheus_of(sample);
  CHECK(has(text, "# TYPE diwarp_x_total gauge\n"));
  CHECK_FALSE(has(text, "counter"));
}

}  // namespace diwarp::tools
