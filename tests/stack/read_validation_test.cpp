// SPDX-License-Identifier: Apache-2.0
#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

constexpr uint64_t kSinkOffset = 0x4142434445464748;

/// A queue pair with a region that may be read, and someone nobody knows.
struct ReadTarget {
  explicit ReadTarget(const DatagramOptions& options = {})
      : party(device, {.memory = 1 << 20, .datagram = options}),
        region(party.pd, party.memory, Access::remote_read) {
    party.fill(pattern(party.memory.size(), 3));
  }

  Segment request(uint32_t length, uint32_t sink = 0x51515151) const {
    return {.msn = sink,
            .opcode = kReadRequest,
            .sink_stag = sink,
            .sink_offset = kSinkOffset,
            .read_length = length,
            .source_stag = region.rkey(),
            .source_offset = region.base()};
  }
  /// Sends that, and returns what came back.
  template <class Message>
  std::vector<Datagram> ask(Peer& from, const Message& message) {
    from.send(party.address(), message);
    world.settle();
    return from.receive();
  }
  std::vector<Datagram> validate(Peer& from, uint32_t incarnation = 1) {
    Segment asked = request(1000);
    asked.incarnation = incarnation;
    const auto challenge = ask(from, asked);
    REQUIRE(challenge.size() == 1);
    return ask(from, Control{.incarnation = incarnation,
                             .type = kEcho,
                             .content = read_control(challenge[0]).content});
  }
  uint64_t count(const char* counter) const { return device.counter(counter); }

  World world;
  Device& device = world.add_device();
  Party party;
  MemoryRegion region;
  Peer peer{world};
};

/// The answer of a target to a source that asked for more than it sent.
Control challenge_of(const Segment& request, uint64_t cookie = 0) {
  return {.type = kChallenge,
          .content = challenge_content(request.sink_offset, pattern(16, cookie))};
}

}  // namespace

TEST_CASE(
    "a requester that asks for more than it sends is challenged, and answered once it echoed the "
    "cookie") {
  ReadTarget target;
  const auto challenge = target.ask(target.peer, target.request(1000));
  REQUIRE(challenge.size() == 1);
  CHECK(challenge[0].size() == 40);  // less than the request
  const Control control = read_control(challenge[0]);
  CHECK(control.type == kChallenge);
  REQUIRE(control.content.size() == 24);
  CHECK(nonce_of(control) == kSinkOffset);
  CHECK(control.flags == 0);
  CHECK(target.count("challenges_sent") == 1);

  CHECK(target.ask(target.peer, Control{.type = kEcho, .content = control.content}).empty());
  CHECK(target.count("echoes_received") == 1);
  const auto response = target.ask(target.peer, target.request(1000));
  REQUIRE(response.size() == 1);
  const Segment segment = read_segment(response[0]);
  CHECK(segment.incarnation == control.incarnation);
  CHECK(segment.opcode == kReadResponse);
  CHECK(segment.stag == 0x51515151);
  CHECK(segment.tagged_offset == kSinkOffset);
  CHECK(segment.last);
  CHECK(same(segment.payload, target.party.bytes(0, 1000)));
}

TEST_CASE("a Read that is no longer than its request is answered without a challenge") {
  ReadTarget target;
  for (const uint32_t length : {0U, 1U, 32U}) {
    const auto response = target.ask(target.peer, target.request(length));
    REQUIRE(response.size() == 1);
    CHECK(response[0].size() <= kRequestBytes);
    CHECK(same(read_segment(response[0]).payload, target.party.bytes(0, length)));
  }
  CHECK(is_control(target.ask(target.peer, target.request(33)).at(0)));
}

TEST_CASE("a validated source has to show its address again after 60 seconds") {
  ReadTarget target;
  target.validate(target.peer);
  target.world.advance(60s - 1ns);
  CHECK_FALSE(is_control(target.ask(target.peer, target.request(1000)).at(0)));
  target.world.advance(1ns);
  CHECK(is_control(target.ask(target.peer, target.request(1000)).at(0)));
}

TEST_CASE("an Echo counts for the address, port and incarnation that were challenged alone") {
  ReadTarget target;
  Peer other(target.world);
  const auto challenge = target.ask(target.peer, target.request(1000));
  const auto content = read_control(challenge.at(0)).content;
  CHECK(target.ask(other, Control{.type = kEcho, .content = content}).empty());
  const Control echo{.incarnation = 2, .type = kEcho, .content = content};
  CHECK(target.ask(target.peer, echo).empty());
  auto changed = content;
  changed[23] ^= std::byte{1};
  CHECK(target.ask(target.peer, Control{.type = kEcho, .content = changed}).empty());
  CHECK(target.count("drop_control") == 3);
  CHECK(target.count("echoes_received") == 0);
  for (Peer* peer : {&target.peer, &other})
    CHECK(is_control(target.ask(*peer, target.request(1000)).at(0)));
}

TEST_CASE("a cookie is no good a minute later") {
  ReadTarget target;
  const auto challenge = target.ask(target.peer, target.request(1000));
  target.world.advance(60s);
  target.ask(target.peer, Control{.type = kEcho, .content = read_control(challenge.at(0)).content});
  CHECK(target.count("drop_control") == 1);
}

TEST_CASE("a validated source's restarted successor is another source") {
  ReadTarget target;
  target.validate(target.peer, 1);
  Segment successor = target.request(1000);
  successor.incarnation = 2;
  CHECK(is_control(target.ask(target.peer, successor).at(0)));
}

TEST_CASE("a reader echoes a Challenge and asks again, with nothing lost and no time gone") {
  ReadScene scene;
  REQUIRE(scene.read(1 << 20).at(0).status == WcStatus::success);
  const size_t challenges = scene.from_target.controls(kChallenge).size();
  CHECK(challenges == 2);  // both requests of the window
  CHECK(scene.from_reader.controls(kEcho).size() == challenges);
  CHECK(scene.from_reader.requests().size() == 4 + challenges);
  CHECK(scene.target_count("echoes_received") == challenges);
  scene.from_target.sent.clear();
  REQUIRE(scene.read(1 << 20).at(0).status == WcStatus::success);
  CHECK(scene.from_target.controls(kChallenge).empty());
}

TEST_CASE("each of several Reads to a target that knows nobody yet is challenged and done") {
  ReadScene scene;
  for (uint64_t i = 0; i < 16; ++i) REQUIRE_FALSE(scene.post(50000, i, {}, i * 50000));
  scene.world.settle();
  const auto completions = drain(scene.reader.send_cq);
  REQUIRE(completions.size() == 16);
  for (const WorkCompletion& completion : completions)
    CHECK(completion.status == WcStatus::success);
  CHECK(scene.arrived(16 * 50000));
}

TEST_CASE("a Challenge that answers no request is not echoed") {
  ScriptedScene scene;
  scene.target.send(scene.reader.address(), challenge_of({}));
  scene.world.settle();
  CHECK(scene.target.receive().empty());
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  const Control challenge = challenge_of(request);
  Peer foreign(scene.world);
  foreign.send(scene.reader.address(), challenge);
  scene.world.settle();
  CHECK(foreign.receive().empty());
  scene.answer(request, 0, 10);
  scene.target.send(scene.reader.address(), challenge);  // it has been answered
  scene.world.settle();
  CHECK(scene.target.receive().empty());
  CHECK(scene.count("drop_control") == 3);
}

TEST_CASE("a Challenge that does not repeat its request's nonce is not echoed") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  Segment guess = request;
  for (int bit = 0; bit < 64; ++bit) {
    guess.sink_offset = request.sink_offset ^ uint64_t { 1 } << bit;
    scene.target.send(scene.reader.address(), challenge_of(guess));
  }
  scene.world.settle();
  CHECK(scene.target.receive().empty());
  CHECK(scene.count("drop_control") == 64);
  scene.target.send(scene.reader.address(), challenge_of(request));
  scene.world.settle();
  CHECK(scene.target.receive().size() == 2);  // the Echo, and the request again
}

TEST_CASE("Challenges make a reader ask for a part at most four times more") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  size_t requests = 0;
  size_t echoes = 0;
  for (int i = 0; i < 100; ++i) {
    const Control challenge = challenge_of(request, static_cast<uint64_t>(i));
    scene.target.send(scene.reader.address(), challenge);
    scene.world.settle();
    for (const Datagram& datagram : scene.target.receive()) {
      if (!is_control(datagram)) {
        ++requests;
        continue;
      }
      CHECK(read_control(datagram).type == kEcho);
      CHECK(read_control(datagram).content == challenge.content);
      ++echoes;
    }
  }
  CHECK(requests == 4);
  CHECK(echoes == 4);
  CHECK(scene.count("drop_control") == 96);
}

TEST_CASE("a Challenge has the request asked again whose nonce it repeats") {
  ScriptedScene scene;
  for (uint64_t i = 0; i < 3; ++i) REQUIRE_FALSE(scene.post(1000, i));
  const auto first = scene.requests();
  REQUIRE(first.size() == 3);
  for (const size_t i : {1U, 0U, 2U, 2U, 0U, 1U}) {
    scene.target.send(scene.reader.address(), challenge_of(first[i]));
    scene.world.settle();
    const auto again = scene.requests();
    REQUIRE(again.size() == 1);
    CHECK(again[0].msn == first[i].msn);
    CHECK(again[0].sink_stag == first[i].sink_stag);
    CHECK(again[0].sink_offset == first[i].sink_offset);
    CHECK(again[0].q_key == first[i].q_key);
  }
}

TEST_CASE("no more Challenges wait than there is room for, and those left out are counted") {
  ReadTarget target({.max_rate = 1000});
  for (int i = 0; i < 200; ++i) target.peer.send(target.party.address(), target.request(1000));
  target.world.settle();
  const uint64_t sent = target.count("challenges_sent");
  CHECK(sent >= 128);
  CHECK(sent <= 130);
  CHECK(target.count("drop_no_context") == 200 - sent);
  target.world.advance(100s);
  CHECK(target.peer.receive().size() >= 1);
}

TEST_CASE("no more responses wait than one source, and all together, may have") {
  ReadTarget target(
      {.max_rate = 1000, .read = {.max_responses = 5, .max_responses_per_source = 3}});
  Peer other(target.world);
  for (Peer* peer : {&target.peer, &other}) {
    target.validate(*peer);
    target.world.advance(1s);
  }
  for (Peer* peer : {&target.peer, &other})
    for (int i = 0; i < 4; ++i) peer->send(target.party.address(), target.request(60000));
  target.world.settle();
  CHECK(target.count("drop_share") == 1);
  CHECK(target.count("drop_no_context") == 2);
}

TEST_CASE("sources that read at the same time share each burst, and all are served to the end") {
  const size_t count = GENERATE(as<size_t>{}, 2, 3, 5, 70);
  ReadTarget target;
  std::deque<Peer> peers;
  for (size_t i = 0; i < count; ++i) target.validate(peers.emplace_back(target.world));
  for (Peer& peer : peers) peer.send(target.party.address(), target.request(100000));
  std::vector<size_t> bytes(count);
  bool shared = true;
  for (int step = 0; step < 2000; ++step) {
    target.device.progress();
    size_t most = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto came = peers[i].receive();
      most = std::max(most, came.size());
      for (const Datagram& datagram : came) bytes[i] += read_segment(datagram).payload.size();
    }
    const bool all_at_work = *std::max_element(bytes.begin(), bytes.end()) < 100000 &&
                             *std::min_element(bytes.begin(), bytes.end()) > 0;
    if (all_at_work && most > 64 / std::min<size_t>(count, 64)) shared = false;
  }
  CHECK(shared);
  for (const size_t one : bytes) CHECK(one == 100000);
}

TEST_CASE("sources that read at the same time are served in turn, within each burst") {
  ReadTarget target({.max_rate = 10'000'000});
  std::deque<Peer> peers;
  for (int i = 0; i < 4; ++i) target.validate(peers.emplace_back(target.world));
  for (Peer& peer : peers) peer.send(target.party.address(), target.request(200000));
  target.world.settle();
  std::vector<size_t> bytes(peers.size());
  for (int step = 0; step < 40; ++step) {  // half of it all
    target.world.advance(1ms);
    for (size_t i = 0; i < peers.size(); ++i)
      for (const Datagram& datagram : peers[i].receive()) bytes[i] += datagram.size();
  }
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  CHECK(*least > 50000);
  CHECK(*most < *least + 40 * 1472);
}

TEST_CASE("a flood of requests from spoofed sources leaves an honest reader its share") {
  ReadSceneOptions options;
  options.target.datagram = {.max_sources = 64};
  options.target.datagram.read = {.max_responses = 32, .max_responses_per_source = 4};
  ReadScene scene(options);
  std::deque<Peer> spoofed;
  for (int i = 0; i < 500; ++i) spoofed.emplace_back(scene.world);
  Random random(4);
  for (uint64_t read = 0; read < 20; ++read) {
    for (Peer& one : spoofed)
      one.send(scene.target.address(), Segment{.incarnation = static_cast<uint32_t>(random.next()),
                                               .opcode = kReadRequest,
                                               .sink_stag = 1,
                                               .read_length = random.chance(0.5) ? 16U : 100000U,
                                               .source_stag = scene.source.rkey(),
                                               .source_offset = scene.source.base()});
    const auto completions = scene.read(100000, {.retries = 3});
    scene.world.advance(1s);
    REQUIRE(completions.size() + drain(scene.reader.send_cq).size() == 1);
    CHECK(scene.arrived(100000));
    std::fill(scene.reader.memory.begin(), scene.reader.memory.end(), std::byte{0});
  }
}

TEST_CASE("a queue pair forgets the requests of others when it is reset") {
  ReadTarget target({.max_rate = 1000});
  target.validate(target.peer);
  target.world.advance(1s);
  for (int i = 0; i < 8; ++i) target.peer.send(target.party.address(), target.request(60000));
  target.world.settle();
  target.party.qp.modify(QpState::reset);
  target.party.qp.modify(QpState::init);
  target.party.qp.modify(QpState::rts);
  target.peer.receive();
  target.world.advance(10s);
  CHECK(target.peer.receive().empty());
  CHECK(is_control(target.ask(target.peer, target.request(1000)).at(0)));
}

TEST_CASE("a Read Request for what may not be read is refused, and told why") {
  ReadTarget target;
  target.validate(target.peer);  // others are not told why
  Party stranger(target.device);
  MemoryRegion unreadable(target.party.pd, target.party.memory, Access::local_write);
  MemoryRegion foreign(stranger.pd, stranger.memory, Access::remote_read);
  const auto refusal = [&](uint32_t stag, uint64_t offset, uint32_t length) {
    Segment request = target.request(length);
    request.source_stag = stag;
    request.source_offset = offset;
    const auto answer = target.ask(target.peer, request);
    REQUIRE(answer.size() == 1);
    CHECK(answer[0].size() <= kRequestBytes);
    const ErrorContent error = read_error(read_control(answer[0]));
    CHECK(error.layer == 0);
    CHECK(error.type == 1);
    return unsigned{error.code};
  };
  const uint32_t stag = target.region.rkey();
  const uint64_t base = target.region.base();
  CHECK(refusal(stag ^ 1U, base, 10) == 0);  // invalid STag
  CHECK(refusal(stag, base - 1, 10) == 1);   // base or bounds
  CHECK(refusal(stag, base + (1 << 20) - 9, 10) == 1);
  CHECK(refusal(unreadable.rkey(), unreadable.base(), 10) == 2);  // access rights
  CHECK(refusal(foreign.rkey(), foreign.base(), 10) == 3);        // not associated
  CHECK(refusal(stag, ~uint64_t{0} - 5, 10) == 4);                // wrap
  CHECK(target.count("drop_stag") == 2);
  CHECK(target.count("drop_bounds") == 3);
  CHECK(target.count("drop_access") == 1);
}

TEST_CASE("a Read of no bytes reads nothing, whatever STag and offset it names") {
  ReadTarget target;
  Segment request = target.request(0);
  request.source_stag ^= 1U;
  request.source_offset = ~uint64_t{0};
  const auto answer = target.ask(target.peer, request);
  REQUIRE(answer.size() == 1);
  CHECK(read_segment(answer[0]).opcode == kReadResponse);
  CHECK(read_segment(answer[0]).last);
}

TEST_CASE("a Read of what may not be read ends with a remote access error") {
  ReadScene scene;
  const Sge sge = scene.reader.mr.sge(0, 1000);
  REQUIRE_FALSE(scene.reader.qp.post_read({.wr_id = 1,
                                           .sges = {sge},
                                           .destination = scene.target.address(),
                                           .remote = {scene.source.rkey() ^ 1U, 0}}));
  REQUIRE_FALSE(scene.post(1000, 2));
  scene.world.settle();
  const auto completions = drain(scene.reader.send_cq);
  REQUIRE(completions.size() == 2);
  CHECK(completions[0].status == WcStatus::remote_access_error);
  CHECK(completions[1].status == WcStatus::success);
  CHECK(scene.reader.qp.state() == QpState::rts);
  CHECK_FALSE(scene.reader.qp.poll_error());
  CHECK(scene.target.qp.poll_error());
}
