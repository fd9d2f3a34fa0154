// SPDX-License-Identifier: Apache-2.0
#include <diwarp/error.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/cost.h"
#include "common/failure.h"
#include "common/flow_set.h"
#include "common/group.h"
#include "common/measure.h"
#include "common/numbers.h"
#include "common/operation.h"
#include "common/options.h"
#include "common/pattern.h"
#include "common/progress_line.h"
#include "common/socket.h"
#include "common/summary.h"
#include "common/text.h"
#include "support/catch.h"

namespace diwarp::tools {
namespace {

using Sizes = std::vector<uint64_t>;

TEST_CASE("a user reads what an error says of the case, and a reason that the system gives") {
  CHECK(sentence_of(Error(Errc::invalid_argument, "The moon is no file")) ==
        "The moon is no file.");
  CHECK(sentence_of(Error(Errc::invalid_argument, "Is it there?")) == "Is it there?");
  CHECK(sentence_of(Error(std::error_code(ENOENT, std::system_category()), "a cannot be read")) ==
        "a cannot be read: No such file or directory");
  CHECK(sentence_of(Failure("As it is")) == "As it is");
}

TEST_CASE("sizes are read alone, as lists and as powers of two") {
  CHECK(parse_sizes({"64"}) == Sizes{64});
  CHECK(parse_sizes({"0", "4K", "1m"}) == Sizes{0, 4096, 1048576});
  CHECK(parse_sizes({"1,2K"}) == Sizes{1, 2048});
  CHECK(parse_sizes({"1:8", "1K"}) == Sizes{1, 2, 4, 8, 1024});
  CHECK(parse_sizes({"3:13"}) == Sizes{3, 6, 12});
  CHECK(parse_sizes({"1G"}) == Sizes{uint64_t{1} << 30});
}

TEST_CASE("sizes that make no sense are refused") {
  for (const char* text : {"", "x", "-1", "64,", "0:4", "8:4", "1:", ":1", "1.3", "1e3", "2G", "K",
                           "1:2:4", " 1", "1KK", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_sizes({text}), Failure);
  }
}

TEST_CASE("without a window 4 MiB are under way over RC and of Reads at most the ORD") {
  constexpr uint64_t kBuffer = 200'000;
  constexpr uint64_t kMebibyte = 1 << 20;
  CHECK(default_window(QpType::rc, Operation::write, kMebibyte, kBuffer) == 4);
  CHECK(default_window(QpType::rc, Operation::read, kMebibyte, kBuffer) == 4);
  CHECK(default_window(QpType::rc, Operation::read, 16 * kMebibyte, kBuffer) == 2);
  CHECK(default_window(QpType::rc, Operation::read, 64, kBuffer) == 16);
  CHECK(default_window(QpType::rc, Operation::write, 64, kBuffer) == 128);
  CHECK(default_window(QpType::ud, Operation::read, 50'000, kBuffer) == 2);
  CHECK(default_window(QpType::ud, Operation::read, kMebibyte, kBuffer) == 1);
  CHECK(default_window(QpType::ud, Operation::send, 50'000, kBuffer) == 4);
  CHECK(default_window(QpType::ud, Operation::send, kMebibyte, kBuffer) == 1);
}

TEST_CASE("without a window 1 MiB of Reads is under way over UD however large the buffer is") {
  constexpr uint64_t kBuffer = 8 << 20;
  constexpr uint64_t kKibibyte = 1 << 10;
  CHECK(default_window(QpType::ud, Operation::read, 1024 * kKibibyte, kBuffer) == 2);
  CHECK(default_window(QpType::ud, Operation::read, 256 * kKibibyte, kBuffer) == 4);
  CHECK(default_window(QpType::ud, Operation::read, 64, kBuffer) == 16);
}

TEST_CASE("rates are powers of 1000, shares are percent") {
  CHECK(parse_rate("1.5G") == 1'500'000'000);
  CHECK(parse_rate("500K") == 500'000);
  CHECK_THROWS_AS(parse_rate("fast"), Failure);
  CHECK(parse_percent("0.5") == 0.5);
  CHECK(parse_percent("1%") == 1);
  CHECK_THROWS_AS(parse_percent("101"), Failure);
  CHECK_THROWS_AS(parse_percent("-1"), Failure);
}

TEST_CASE("segments are those of the path, jumbo, or of a number of bytes") {
  CHECK_FALSE(parse_segment("mtu").jumbo);
  CHECK(parse_segment("mtu").size == 0);
  CHECK(parse_segment("jumbo").jumbo);
  CHECK(parse_segment("jumbo").size == 0);
  CHECK(parse_segment("128").size == 128);
  CHECK(parse_segment("65507").size == 65507);
  CHECK(parse_segment("9000").jumbo);
  for (const char* text : {"", "MTU", "127", "65508", "-1", "1472 ", "1.5", "0x200", "4K"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_segment(text),
                      Catch::Matchers::ContainsSubstring("--segment needs mtu, jumbo"));
  }
}

TEST_CASE("when the target of a record is told has three names") {
  for (const RecordCompletion completion :
       {RecordCompletion::complete, RecordCompletion::last_segment, RecordCompletion::per_segment})
    CHECK(parse_completion(to_string(completion)) == completion);
  CHECK_THROWS_WITH(parse_completion("last_segment"),
                    Catch::Matchers::ContainsSubstring("complete, last-segment, per-segment"));
}

TEST_CASE("switches are on or off") {
  CHECK(parse_switch("--gso", "on"));
  CHECK_FALSE(parse_switch("--gso", "off"));
  for (const char* text : {"", "ON", "1", "yes", "on "})
    CHECK_THROWS_WITH(parse_switch("--gso", text),
                      Catch::Matchers::ContainsSubstring("--gso is on or off"));
}

TEST_CASE("lines are at most as long as a terminal is wide, where their words are") {
  CHECK(wrapped("head ", "some words", 80) == "head some words");
  CHECK(wrapped("head ", "", 80) == "head ");
  CHECK(wrapped("ab ", "cd ef gh", 9) == "ab cd ef\n   gh");
  CHECK(wrapped("ab ", "cd ef gh", 8) == "ab cd ef\n   gh");
  CHECK(wrapped("ab ", "cd ef gh", 7) == "ab cd\n   ef\n   gh");
  CHECK(wrapped("", "longer-than-that x", 5) == "longer-than-that\nx");
}

TEST_CASE("progress moves within a long message, and is never complete") {
  constexpr uint64_t kLong = 100 << 20;
  CHECK(ProgressLine::percent(0, 1, kLong / 4, kLong) == 25);
  CHECK(ProgressLine::percent(1, 1, kLong / 2, kLong) == 50);  // begun
  CHECK(ProgressLine::percent(3, 4, 3 * kLong, kLong) == 75);
  CHECK(ProgressLine::percent(4, 4, 5 * kLong, kLong) == 99);
  CHECK(ProgressLine::percent(1, 4, 0, kLong) == 25);  // a device that counts no bytes
  CHECK(ProgressLine::percent(50, 200, 64 * 50, 64) == 25);
  CHECK(ProgressLine::percent(0, 0, 0, 0) == 0);
}

TEST_CASE("processor time grows, and goes from one end to the other as it is") {
  const ProcessorTime before = processor_time();
  volatile uint64_t sum = 0;
  while ((processor_time() - before).user_us + (processor_time() - before).system_us < 1000)
    for (int i = 0; i < 1000; ++i) sum = sum + 1;
  const Cost cost{.processor = {.user_us = 1'500'000, .system_us = 250'000},
                  .overflowed = 3,
                  .zerocopy_sends = 4};
  const Cost told = cost_in(to_json(cost));
  CHECK(told.processor.user_us == 1'500'000);
  CHECK(told.processor.system_us == 250'000);
  CHECK(told.overflowed == 3);
  CHECK(told.zerocopy_sends == 4);
  Json wrong = to_json(cost);
  wrong["user_us"] = -1;
  CHECK_THROWS_AS(cost_in(wrong), Failure);
  CHECK(processor_text({{"processor", processor_times(cost, cost)}}) == "1.75+1.75");
  CHECK(processor_text({{"processor", processor_times(cost)}}) == "1.75");
  CHECK(processor_text(Json::object()) == "-");
}

TEST_CASE("the messages of a row are those of its streams, each way") {
  RowFlows flows{.streams = 2};
  CHECK(flows.count() == 2);
  CHECK(flows.source_of(1) == RowEnd::client);
  flows.bidirectional = true;
  CHECK(flows.count() == 4);
  CHECK(flows.source_of(1) == RowEnd::client);
  CHECK(flows.source_of(2) == RowEnd::server);
  CHECK(completion_entries(flows, RowEnd::client) == completion_entries(flows, RowEnd::server));
}

TEST_CASE("each operation is of the transports that have it") {
  for (const QpType transport : {QpType::ud, QpType::rc, QpType::rd}) {
    CHECK(parse_transport(to_string(transport)) == transport);
    CHECK_NOTHROW(check_transport(Operation::send, transport));
    CHECK_NOTHROW(check_transport(Operation::read, transport));
  }
  CHECK_THROWS_AS(parse_transport("udp"), Failure);
  for (const Operation operation : {Operation::write, Operation::atomic, Operation::send_imm}) {
    CHECK_NOTHROW(check_transport(operation, QpType::rc));
    CHECK_THROWS_AS(check_transport(operation, QpType::ud), Failure);
    CHECK_THROWS_AS(check_transport(operation, QpType::rd), Failure);
  }
  CHECK_NOTHROW(check_transport(Operation::write_record, QpType::ud));
  CHECK_NOTHROW(check_transport(Operation::write_record, QpType::rd));
  CHECK_THROWS_AS(check_transport(Operation::write_record, QpType::rc), Failure);
}

TEST_CASE("a group is told to the receivers as it is, and others are refused") {
  const Group group = make_group(Address::parse("239.1.2.3:4000"));
  CHECK((group.stag >> 8) != 0);
  Json row = {{"type", "row"}};
  CHECK(!group_in(row));
  row["group"] = to_json(group);
  const auto told = group_in(row);
  REQUIRE(told);
  CHECK(told->address == group.address);
  CHECK(told->stag == group.stag);
  for (const char* member : {"address", "port", "stag"}) {
    Json wrong = row;
    wrong["group"].erase(member);
    CHECK_THROWS_AS(group_in(wrong), Failure);
    wrong["group"][member] = -1;
    CHECK_THROWS_AS(group_in(wrong), Failure);
  }
  row["group"] = "239.1.2.3";
  CHECK_THROWS_AS(group_in(row), Failure);
}

TEST_CASE("an address that a peer names is one, without its port") {
  CHECK(address_in({{"address", "10.0.0.1:7"}}, "address") == Address::parse("10.0.0.1"));
  CHECK(address_in({{"address", "fe80::1"}}, "address") == Address::parse("fe80::1"));
  for (const Json& wrong : {Json::object(), Json{{"address", 7}}, Json{{"address", "here"}}})
    CHECK_THROWS_AS(address_in(wrong, "address"), Failure);
}

TEST_CASE("the route to this host begins at the address itself") {
  CHECK(local_address_to(Address::parse("127.0.0.1:7")) == Address::parse("127.0.0.1"));
}

TEST_CASE("a summary takes its figures from the sample by nearest rank") {
  std::vector<double> values;
  for (int i = 1000; i > 0; --i) values.push_back(i);
  const Summary summary = summarize(values);
  CHECK(summary.min == 1);
  CHECK(summary.p50 == 500);
  CHECK(summary.p99 == 990);
  CHECK(summary.p999 == 999);
  CHECK(summary.max == 1000);
  CHECK(summarize({}).max == 0);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
}

TEST_CASE("every changed byte of a message is found") {
  for (size_t size : {1u, 2u, 3u, 4u, 5u, 11u, 12u, 13u, 64u, 1000u}) {
    std::vector<std::byte> message(size);
    fill(message, 77, Way::there);
    REQUIRE(!first_difference(message, 77, Way::there));
    for (size_t at = 0; at < size; ++at) {
      message[at] ^= std::byte{0x10};
      CHECK(first_difference(message, 77, Way::there) == at);
      message[at] ^= std::byte{0x10};
    }
  }
}

TEST_CASE("messages differ by number, way and size") {
  std::vector<std::byte> message(64);
  fill(message, 77, Way::there);
  CHECK(first_difference(message, 78, Way::there) == 0);
  CHECK(first_difference(message, 77 + (uint64_t{1} << 32), Way::there) == 4);
  CHECK(first_difference(message, 77, Way::back) == 4);
  CHECK(first_difference(std::span(message).first(63), 77, Way::there) == 4);
}

TEST_CASE("a message's number is the nearest to the expected one") {
  std::vector<std::byte> byte(1);
  std::vector<std::byte> word(8);
  for (uint64_t number : {0u, 5u, 255u, 256u, 1000u, 70000u}) {
    for (int off : {-100, -1, 0, 1, 100}) {
      if (static_cast<int64_t>(number) + off < 0) continue;
      const uint64_t expected = number + static_cast<uint64_t>(off);
      stamp(byte, number);
      stamp(word, number);
      CAPTURE(number, off);
      CHECK(number_of(byte, expected) == number);
      CHECK(number_of(word, expected) == number);
    }
  }
  CHECK(!number_of({}, 3));
}

TEST_CASE("a run fails by more loss than allowed, and tells the first reason") {
  Verdict verdict;
  verdict.check_loss(1, 100, 64, 1);
  CHECK_NOTHROW(verdict.pronounce());
  verdict.check_loss(2, 100, 64, 1);
  verdict.fail("Later.");
  CHECK_THROWS_WITH(verdict.pronounce(),
                    "2 of 100 messages of 64 bytes got lost, more than --max-loss allows.");
}

}  // namespace
}  // namespace diwarp::tools
