// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "stack/blind_guesses.h"
#include "stack/read_scene.h"
#include "stack/ud_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// The odds of one blind datagram over UD (docs/security.md, "Blind datagrams"), with fields of
/// which the attacker knows all bits but a few.

TEST_CASE("blind: of all guesses at incarnation and MSN one damages an open message") {
  const std::array<GuessedField, 2> fields{{{0xC0FFEE5A, 6}, {0x12345678, 4}}};
  Scene scene;
  scene.target.post_receives(1, 20);
  const auto half = [&](uint64_t incarnation, uint64_t msn, bool second) {
    Segment segment = scene.half(static_cast<uint32_t>(msn), second);
    segment.incarnation = static_cast<uint32_t>(incarnation);
    if (second) segment.payload.assign(10, std::byte{0xEE});
    scene.send(scene.stranger, segment);
  };
  half(fields[0].right, fields[1].right, false);
  for_each_wrong_guess(fields, [&](const auto& guess) { half(guess[0], guess[1], true); });
  CHECK(scene.received().empty());
  CHECK(scene.count("drop_no_receive") == 1023);
  half(fields[0].right, fields[1].right, true);
  CHECK(scene.received() == Ids{0});
}

TEST_CASE("blind: Sends with guessed incarnations close no message, the right one closes its own") {
  constexpr uint32_t kRight = 0xC0FFEE5A;
  constexpr uint32_t kMessages = 4;
  Scene scene({.memory = 2560, .capacity = {.max_recv_wr = 256}});
  scene.target.post_receives(256, 10);
  const auto send = [&](uint64_t incarnation, uint64_t msn) {
    Segment segment = scene.whole(static_cast<uint32_t>(msn));
    segment.incarnation = static_cast<uint32_t>(incarnation);
    scene.send(scene.stranger, segment);
  };
  for (uint32_t msn = 0; msn < kMessages; ++msn)
    for_each_wrong_guess(std::array<GuessedField, 1>{{{kRight, 5}}},
                         [&](const auto& guess) { send(guess[0], msn); });
  send(kRight, 2);
  CHECK(scene.received().size() == kMessages * 31 + 1);
  for (uint32_t msn = 0; msn < kMessages; ++msn) send(kRight, msn);
  CHECK(scene.received().size() == kMessages - 1);
}

TEST_CASE("blind: of all guesses at a sink's STag and offset those inside the request are placed") {
  constexpr uint64_t kLength = 17;
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(kLength));
  const Segment request = scene.requests().at(0);
  for (uint32_t change = 0; change < 16; ++change) {
    for (uint64_t distance = 0; distance < 256; ++distance) {
      Segment segment = ScriptedScene::part(request, 0, 1);
      segment.stag ^= change >> 2 << 30 | (change & 3);  // its first two bits and its last two
      segment.tagged_offset = request.sink_offset - 128 + distance;
      scene.answer(segment);
    }
  }
  // One byte that does not end the response fits anywhere but at the request's end.
  CHECK(scene.count("drop_response") + scene.count("drop_oversized") +
            scene.count("drop_contradiction") ==
        16 * 256 - (kLength - 1));
  CHECK(std::ranges::count(scene.reader.memory, std::byte{0}) ==
        static_cast<ptrdiff_t>(scene.reader.memory.size() - (kLength - 1)));
  CHECK(scene.completions().empty());
}

TEST_CASE("blind: of all guesses at a request's MSN and nonce one Error ends the Read") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(100));
  const Segment request = scene.requests().at(0);
  const auto report = [&](uint64_t msn, uint64_t nonce) {
    Segment offending = request;
    offending.msn = static_cast<uint32_t>(msn);
    offending.q_key = static_cast<uint32_t>(nonce);
    scene.target.send(scene.reader.address(), error_about(offending, 0, 1, 1));
    scene.world.settle();
  };
  const std::array<GuessedField, 2> fields{{{request.msn, 6}, {request.q_key, 6}}};
  for_each_wrong_guess(fields, [&](const auto& guess) { report(guess[0], guess[1]); });
  CHECK(scene.completions().empty());
  report(request.msn, request.q_key);
  CHECK(scene.completions().at(0).status == WcStatus::remote_access_error);
}

TEST_CASE("blind: of all guesses at a request's offset one has a Challenge taken") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(100));
  const Segment request = scene.requests().at(0);
  const std::vector<std::byte> cookie(16, std::byte{0xEE});
  const auto challenge = [&](uint64_t nonce) {
    scene.target.send(scene.reader.address(),
                      Control{.type = kChallenge, .content = challenge_content(nonce, cookie)});
    scene.world.settle();
  };
  for_each_wrong_guess(std::array<GuessedField, 1>{{{request.sink_offset, 12}}},
                       [&](const auto& guess) { challenge(guess[0]); });
  CHECK(scene.count("drop_control") == 4095);
  CHECK(scene.target.receive().empty());
  challenge(request.sink_offset);
  CHECK(scene.target.receive().size() == 2);  // the echo, and the request again
}
