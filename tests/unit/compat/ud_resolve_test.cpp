// SPDX-License-Identifier: Apache-2.0
// The messages that resolve a UD service, and the rules of both sides.
#include <random>

#include "compat/cm/ud_messages.h"
#include "compat/cm/ud_queries.h"
#include "compat/cm/ud_requests_seen.h"
#include "support/catch.h"

using namespace diwarp::compat;
using namespace std::chrono_literals;
using diwarp::Address;

namespace {

std::vector<std::byte> bytes(size_t length, unsigned value = 7) {
  return std::vector<std::byte>(length, static_cast<std::byte>(value));
}

UdAnswerMessage acceptance(size_t private_data) {
  return {.number = 5,
          .status = UdStatus::accepted,
          .queue_pair = 0xabcdef,
          .q_key = 0x01234567,
          .private_data = bytes(private_data)};
}

UdRequestKey key(uint64_t number, const char* requester = "192.0.2.7:4711") {
  return {Address::parse(requester), number};
}

constexpr TimePoint kStart{};

}  // namespace

TEST_CASE("A request and an answer come through as they were") {
  const auto request = parse_ud_request(encode(UdRequestMessage{0x0102030405060708, bytes(180)}));
  REQUIRE(request);
  CHECK(request->number == 0x0102030405060708);
  CHECK(request->private_data == bytes(180));
  const auto answer = parse_ud_answer(encode(acceptance(136)));
  REQUIRE(answer);
  CHECK(answer->number == 5);
  CHECK(answer->status == UdStatus::accepted);
  CHECK(answer->queue_pair == 0xabcdef);
  CHECK(answer->q_key == 0x01234567);
  CHECK(answer->private_data == bytes(136));
}

TEST_CASE("A message's bytes are those of the document") {
  const auto answer = encode(acceptance(1));
  const unsigned char expected[] = {0x64, 0x77, 0x55, 0x44, 1,    2,    0,   1, 0,
                                    0,    0,    0,    0,    0,    0,    5,   0, 0xab,
                                    0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x07};
  REQUIRE(answer.size() == sizeof expected);
  for (size_t i = 0; i < answer.size(); ++i)
    CHECK(std::to_integer<unsigned>(answer[i]) == expected[i]);
}

TEST_CASE("No answer is longer than a request, whatever private data they have") {
  for (const size_t length : {size_t{0}, size_t{1}, size_t{255}, size_t{300}}) {
    CHECK(encode(UdRequestMessage{1, bytes(length)}).size() == kUdRequestBytes);
    CHECK(encode(acceptance(length)).size() <= kUdRequestBytes);
  }
}

TEST_CASE("A message that is cut, longer, or has one wrong field is none") {
  const auto request = encode(UdRequestMessage{1, bytes(9)});
  const auto answer = encode(acceptance(9));
  for (size_t length = 0; length < request.size(); ++length)
    CHECK_FALSE(parse_ud_request(std::span(request).first(length)));
  for (size_t length = 0; length < answer.size(); ++length)
    CHECK_FALSE(parse_ud_answer(std::span(answer).first(length)));
  CHECK_FALSE(parse_ud_answer(request));
  CHECK_FALSE(parse_ud_request(answer));
  for (size_t place = 0; place <= 6; ++place) {
    auto wrong = request;
    wrong[place] ^= std::byte{0x80};
    CHECK_FALSE(parse_ud_request(wrong));
    wrong = answer;
    wrong[place] ^= std::byte{0x80};
    CHECK_FALSE(parse_ud_answer(wrong));
  }
  auto longer = answer;
  longer.push_back(std::byte{0});
  CHECK_FALSE(parse_ud_answer(longer));
}

TEST_CASE("An answer whose queue pair does not fit its status is none") {
  UdAnswerMessage answer = acceptance(0);
  answer.queue_pair = 0;
  CHECK_FALSE(parse_ud_answer(encode(answer)));
  answer.queue_pair = 0x1000000;
  CHECK_FALSE(parse_ud_answer(encode(answer)));
  answer = {.number = 5, .status = UdStatus::rejected, .queue_pair = 1};
  CHECK_FALSE(parse_ud_answer(encode(answer)));
  CHECK(parse_ud_answer(encode(UdAnswerMessage{.number = 5, .status = UdStatus::rejected})));
}

TEST_CASE("Random bytes are never taken for a message beyond their end") {
  std::mt19937 random(17);
  for (int i = 0; i < 20000; ++i) {
    auto noise = i % 2 == 0 ? encode(acceptance(random() % 256))
                            : encode(UdRequestMessage{random(), bytes(random() % 256)});
    for (int flips = 0; flips < 3; ++flips)
      noise[random() % noise.size()] = static_cast<std::byte>(random());
    noise.resize(random() % (noise.size() + 1));
    if (const auto request = parse_ud_request(noise)) CHECK(request->private_data.size() <= 255);
    if (const auto answer = parse_ud_answer(noise)) CHECK(answer->private_data.size() <= 255);
  }
}

TEST_CASE("A request that is repeated asks the program once, and gets its answer again") {
  using Verdict = UdRequestsSeen::Verdict;
  UdRequestsSeen seen;
  CHECK(seen.note_request(key(1), kStart).verdict == Verdict::fresh);
  CHECK(seen.note_request(key(1), kStart).verdict == Verdict::waiting);
  CHECK(seen.note_request(key(1, "192.0.2.8:4711"), kStart).verdict == Verdict::fresh);
  CHECK(seen.note_answer(key(1), bytes(30), kStart));
  CHECK_FALSE(seen.note_answer(key(1), bytes(31), kStart));
  const auto again = seen.note_request(key(1), kStart + 1s);
  CHECK(again.verdict == Verdict::answered);
  REQUIRE(again.answer != nullptr);
  CHECK(*again.answer == bytes(30));
}

TEST_CASE("An answer is forgotten in time, and one that nobody asked for is not kept") {
  UdRequestsSeen seen;
  CHECK_FALSE(seen.note_answer(key(1), bytes(30), kStart));
  seen.note_request(key(1), kStart);
  seen.note_answer(key(1), bytes(30), kStart);
  CHECK(seen.note_request(key(1), kStart + 59s).verdict == UdRequestsSeen::Verdict::answered);
  CHECK(seen.note_request(key(1), kStart + 60s).verdict == UdRequestsSeen::Verdict::fresh);
}

TEST_CASE("A flood of requests takes bounded memory, and the answered ones give way") {
  UdRequestsSeen seen({.max_open = 8, .max_answered = 4});
  for (uint64_t number = 0; number < 1000; ++number) seen.note_request(key(number), kStart);
  CHECK(seen.open() == 8);
  CHECK(seen.note_request(key(999), kStart).verdict == UdRequestsSeen::Verdict::no_room);
  for (uint64_t number = 0; number < 8; ++number)
    CHECK(seen.note_answer(key(number), bytes(24), kStart));
  CHECK(seen.open() == 0);
  CHECK(seen.answered() == 4);
  CHECK(seen.note_request(key(7), kStart).verdict == UdRequestsSeen::Verdict::answered);
  CHECK(seen.note_request(key(0), kStart).verdict == UdRequestsSeen::Verdict::fresh);
}

TEST_CASE("A host that floods with requests leaves room for those of others") {
  using Verdict = UdRequestsSeen::Verdict;
  UdRequestsSeen seen({.max_open = 8, .max_open_of_host = 6});
  for (uint64_t number = 0; number < 1000; ++number) {
    const char* const requester = number % 2 == 0 ? "192.0.2.7:1" : "192.0.2.7:2";
    seen.note_request(key(number, requester), kStart);
  }
  CHECK(seen.open() == 6);
  CHECK(seen.note_request(key(1, "192.0.2.8:1"), kStart).verdict == Verdict::fresh);
  CHECK(seen.note_request(key(2, "192.0.2.8:1"), kStart).verdict == Verdict::fresh);
  CHECK(seen.note_request(key(3, "192.0.2.8:1"), kStart).verdict == Verdict::no_room);
  CHECK(seen.note_answer(key(0, "192.0.2.7:1"), bytes(24), kStart));
  CHECK(seen.note_request(key(2000, "192.0.2.7:2"), kStart).verdict == Verdict::fresh);
}

TEST_CASE("A query is repeated at growing distances until it is given up") {
  UdQueries queries({.first = 100ms, .longest = 400ms, .all = 2s});
  CHECK_FALSE(queries.next());
  queries.begin(9, 3, Address::parse("192.0.2.7:7174"), bytes(280), kStart);
  CHECK(queries.next() == kStart + 100ms);
  CHECK(queries.due(kStart + 99ms).empty());
  CHECK(queries.due(kStart + 100ms).size() == 1);
  CHECK(queries.next() == kStart + 300ms);
  CHECK(queries.due(kStart + 300ms).size() == 1);
  CHECK(queries.next() == kStart + 700ms);
  CHECK(queries.due(kStart + 700ms).size() == 1);
  CHECK(queries.next() == kStart + 1100ms);
  CHECK(queries.take_expired(kStart + 1999ms).empty());
  CHECK(queries.take_expired(kStart + 2s).size() == 1);
  CHECK_FALSE(queries.next());
}

TEST_CASE("An answer ends its query alone, once, and a cancelled query has none") {
  UdQueries queries;
  const Address service = Address::parse("192.0.2.7:7174");
  for (uint64_t number = 1; number <= 3; ++number)
    queries.begin(number, number + 10, service, {}, kStart);
  CHECK(queries.take(1)->id == 11);
  CHECK_FALSE(queries.take(1));
  queries.cancel(12);
  CHECK_FALSE(queries.take(2));
  CHECK(queries.take_all_to(service.with_port(1)).empty());
  CHECK(queries.take_all_to(service).size() == 1);
  CHECK_FALSE(queries.next());
}
