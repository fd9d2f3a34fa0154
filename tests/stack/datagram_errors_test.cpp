// SPDX-License-Identifier: Apache-2.0
#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// A queue pair with a region that may be read and written, and someone who sends it what he likes.
struct ErrorScene {
  explicit ErrorScene(const DatagramOptions& options = {})
      : party(device, {.datagram = options}),
        region(party.pd, party.memory,
               Access::local_write | Access::remote_write | Access::remote_read) {}

  template <class Message>
  std::vector<Datagram> send(const Message& message) {
    peer.send(party.address(), message);
    world.settle();
    return peer.receive();
  }
  Segment record(uint32_t stag, uint64_t offset = 0, size_t length = 100) const {
    return {.msn = 77,
            .payload = pattern(length, 1),
            .opcode = kWriteRecord,
            .stag = stag,
            .tagged_offset = offset};
  }
  Segment request(uint32_t stag, uint64_t offset = 0, uint32_t length = 100) const {
    return {.msn = 78,
            .opcode = kReadRequest,
            .sink_stag = 5,
            .read_length = length,
            .source_stag = stag,
            .source_offset = offset};
  }
  /// The peer shows that it hears what is sent to its address.
  void validate() {
    const auto challenge = send(request(region.rkey(), region.base(), 1000));
    REQUIRE(challenge.size() == 1);
    CHECK(send(Control{.type = kEcho, .content = read_control(challenge[0]).content}).empty());
  }
  std::vector<DatagramError> errors() {
    std::vector<DatagramError> all;
    while (const auto error = party.qp.poll_error()) all.push_back(*error);
    return all;
  }
  uint64_t count(const char* counter) const { return device.counter(counter); }

  World world;
  Device& device = world.add_device();
  Party party;
  MemoryRegion region;
  Peer peer{world};
};

TerminateCode code_of(const ErrorContent& error) { return {error.layer, error.type, error.code}; }

}  // namespace

TEST_CASE("each fault over datagrams is told to the application and to a validated source") {
  ErrorScene scene;
  scene.validate();
  const uint32_t stag = scene.region.rkey();
  const uint64_t base = scene.region.base();
  struct Fault {
    Segment segment;
    TerminateCode code;  // as RFC 5040 section 4.8 and RFC 5041 section 7.2 have it
    const char* counter;
  };
  const std::vector<Fault> faults{
      {scene.record(stag ^ 1U, base), {1, 1, 0}, "drop_stag"},
      {scene.record(stag, base + 65536 - 99), {1, 1, 1}, "drop_bounds"},
      {scene.record(scene.party.mr.rkey(), scene.party.mr.base()), {0, 1, 2}, "drop_access"},
      {scene.request(stag ^ 1U, base), {0, 1, 0}, "drop_stag"},
      {scene.request(stag, base - 1), {0, 1, 1}, "drop_bounds"},
      {scene.request(scene.party.mr.rkey(), scene.party.mr.base()), {0, 1, 2}, "drop_access"},
      {scene.request(stag, ~uint64_t{0} - 1), {0, 1, 4}, "drop_bounds"},
      {{.msn = 79, .payload = pattern(100, 2)}, {1, 2, 2}, "drop_no_receive"},
  };
  for (const auto& [segment, code, counter] : faults) {
    const uint64_t counted = scene.count(counter);
    const auto answers = scene.send(segment);
    CAPTURE(counter, int{code.layer}, int{code.type}, int{code.code});
    CHECK(scene.count(counter) == counted + 1);
    REQUIRE(answers.size() == 1);
    const Control control = read_control(answers[0]);
    CHECK(control.type == kError);
    const ErrorContent said = read_error(control);
    CHECK(code_of(said) == code);
    const auto headers = header_bytes(segment);
    CHECK(std::equal(said.headers.begin(), said.headers.end(), headers.begin()));
    CHECK(said.segment_bytes == headers.size() + segment.payload.size());

    const auto errors = scene.errors();
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].peer == scene.peer.address());
    CHECK_FALSE(errors[0].reported);
    CHECK(errors[0].code == code);
    CHECK(errors[0].opcode == opcode_of(segment));
    CHECK(errors[0].msn == segment.msn);
    const bool read = segment.opcode == kReadRequest;
    CHECK(errors[0].stag == (read ? segment.source_stag : segment.stag));
    CHECK(errors[0].tagged_offset == (read ? segment.source_offset : segment.tagged_offset));
  }
  CHECK(scene.count("errors_sent") == faults.size());
  CHECK(scene.party.qp.state() == QpState::rts);
}

TEST_CASE("a source that was not validated is told one code of all faults in naming memory") {
  ErrorScene scene;
  const uint32_t stag = scene.region.rkey();
  const uint64_t base = scene.region.base();
  const uint32_t local = scene.party.mr.rkey();
  struct Fault {
    Segment segment;
    TerminateCode told;
    TerminateCode found;
  };
  const std::vector<Fault> faults{
      {scene.record(stag ^ 1U, base), {1, 1, 0}, {1, 1, 0}},
      {scene.record(stag, base + 65536 - 99), {1, 1, 0}, {1, 1, 1}},
      {scene.record(local, scene.party.mr.base()), {1, 1, 0}, {0, 1, 2}},
      {scene.request(stag ^ 1U, base, 10), {0, 1, 0}, {0, 1, 0}},
      {scene.request(stag, base - 1, 10), {0, 1, 0}, {0, 1, 1}},
      {scene.request(local, scene.party.mr.base(), 10), {0, 1, 0}, {0, 1, 2}},
  };
  for (const auto& [segment, told, found] : faults) {
    CAPTURE(int{found.layer}, int{found.type}, int{found.code});
    const auto answers = scene.send(segment);
    REQUIRE(answers.size() == 1);
    CHECK(code_of(read_error(read_control(answers[0]))) == told);
    CHECK(scene.errors().at(0).code == found);
  }
}

TEST_CASE("a long Read of a source that was not validated tells nothing of the memory it names") {
  ErrorScene scene;
  for (const uint32_t flip : {0U, 1U, 0x100U}) {
    const auto answers = scene.send(scene.request(scene.region.rkey() ^ flip, 0, 1000));
    REQUIRE(answers.size() == 1);
    CHECK(read_control(answers[0]).type == kChallenge);
  }
  CHECK(scene.count("drop_stag") == 0);
}

TEST_CASE(
    "a message too long for the receive it found is told to the application and to the source") {
  ErrorScene scene;
  REQUIRE_FALSE(scene.party.post_recv(1, 0, 50));
  const auto answers = scene.send(Segment{.payload = pattern(100, 2)});
  REQUIRE(answers.size() == 1);
  CHECK(code_of(read_error(read_control(answers[0]))) == TerminateCode{1, 2, 5});
  CHECK(scene.errors().at(0).code == TerminateCode{1, 2, 5});
}

TEST_CASE("an Error has the offending headers where it stays no longer than its cause") {
  ErrorScene scene;
  // 38 bytes around a Write-Record's payload; around an Error's headers 8 + 4 + 4 + 2 + 4.
  const auto size_of_error = [&](size_t payload) {
    const auto answers = scene.send(scene.record(1, 0, payload));
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].size() <= kRecordOverhead + payload);
    return answers[0].size();
  };
  CHECK(size_of_error(10) == 22 + 26);
  CHECK(size_of_error(9) == 22 + 14);  // the DDP header alone
  CHECK(size_of_error(0) == 22 + 14);
}

TEST_CASE("an Error that comes stands in the error queue") {
  ErrorScene scene;
  const Segment offending = scene.record(0x1234, 99);
  CHECK(scene.send(error_about(offending, 1, 1, 0)).empty());
  const auto errors = scene.errors();
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].reported);
  CHECK(errors[0].peer == scene.peer.address());
  CHECK(errors[0].code == TerminateCode{1, 1, 0});
  CHECK(errors[0].opcode == kWriteRecord);
  CHECK(errors[0].msn == 77);
  CHECK(errors[0].stag == 0x1234);
  CHECK(errors[0].tagged_offset == 99);
  CHECK(scene.count("errors_received") == 1);

  CHECK(scene.send(Control{.type = kError, .content = to_bytes(ErrorContent{2, 0, 2})}).empty());
  CHECK(scene.errors().at(0).code == TerminateCode{2, 0, 2});
}

TEST_CASE("an Error about a Read ends it, if it comes from the Read's target") {
  struct Case {
    uint8_t layer, type, code;
    WcStatus status;
  };
  const auto [layer, type, code, status] = GENERATE(
      Case{0, 1, 0, WcStatus::remote_access_error}, Case{0, 1, 2, WcStatus::remote_access_error},
      Case{0, 0, 0, WcStatus::remote_operation_error},
      Case{1, 2, 2, WcStatus::remote_operation_error});
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  const Control error = error_about(request, layer, type, code);
  Segment another = request;
  ++another.msn;
  Peer foreign(scene.world);
  foreign.send(scene.reader.address(), error);
  scene.target.send(scene.reader.address(), error_about(another, layer, type, code));
  Segment guess = request;
  guess.q_key ^= 1;  // another nonce
  scene.target.send(scene.reader.address(), error_about(guess, layer, type, code));
  Segment send = request;
  send.opcode = 3;
  scene.target.send(scene.reader.address(), error_about(send, layer, type, code));
  scene.world.settle();
  CHECK(scene.completions().empty());
  size_t others = 0;
  while (scene.reader.qp.poll_error()) ++others;
  CHECK(others == 4);

  scene.answer(request, 0, 100);
  scene.target.send(scene.reader.address(), error);
  scene.world.settle();
  const auto completions = scene.completions();
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].status == status);
  CHECK_FALSE(scene.reader.qp.poll_error());
  scene.answer(request, 100, 100);
  CHECK(scene.count("drop_response") == 1);
  CHECK(scene.holds({{0, 100}}));
}

TEST_CASE("an Error that does not repeat its Read Request's nonce does not end the Read") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  Segment guess = request;
  for (int bit = 0; bit < 32; ++bit) {
    guess.q_key = request.q_key ^ 1U << bit;
    scene.target.send(scene.reader.address(), error_about(guess, 0, 1, 0));
  }
  scene.world.settle();
  CHECK(scene.count("errors_received") == 32);
  CHECK(scene.completions().empty());
  scene.answer_all(request);
  CHECK(scene.completions().at(0).status == WcStatus::success);
}

TEST_CASE("an Error with no more than the DDP header finds its Read") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  const auto headers = header_bytes(scene.requests().at(0));
  const ErrorContent content{.layer = 0,
                             .type = 1,
                             .code = 1,
                             .headers = {headers.begin(), headers.begin() + 18},
                             .segment_bytes = 46};
  scene.target.send(scene.reader.address(), Control{.type = kError, .content = to_bytes(content)});
  scene.world.settle();
  CHECK(scene.completions().at(0).status == WcStatus::remote_access_error);
}

TEST_CASE("the error queue keeps the oldest errors") {
  ErrorScene scene({.error_queue = 3});
  for (uint32_t stag = 1; stag <= 5; ++stag) scene.send(scene.record(stag));
  const auto errors = scene.errors();
  REQUIRE(errors.size() == 3);
  for (uint32_t i = 0; i < 3; ++i) CHECK(errors[i].stag == i + 1);
  scene.send(scene.record(6));
  CHECK(scene.errors().at(0).stag == 6);
}

TEST_CASE("a queue pair without an error queue goes without") {
  ErrorScene scene({.error_queue = 0});
  CHECK(scene.send(scene.record(1)).size() == 1);
  CHECK(scene.errors().empty());
}

TEST_CASE("no more Errors are sent than their rate allows, no matter which peer causes them") {
  ErrorScene scene({.stag_misses_per_source = 1000, .error_rate = 100});
  size_t answers = 0;
  for (int i = 0; i < 500; ++i) {  // in one second
    scene.world.advance(2ms);
    answers += scene.send(scene.record(1)).size();
  }
  CHECK(answers >= 100);
  CHECK(answers <= 110);
  CHECK(scene.count("errors_sent") == answers);
  CHECK(scene.count("errors_suppressed") == 500 - answers);
  CHECK(scene.count("drop_stag") == 500);
}

TEST_CASE("a datagram that came by way of a group is not answered, but stands in the error queue") {
  ErrorScene scene;
  const Address group = Address::parse("239.1.2.3");
  scene.party.qp.join(group);
  const auto send = [&](const auto& message) {
    scene.peer.send(group.with_port(scene.party.address().port()), message);
    scene.world.settle();
    return scene.peer.receive();
  };
  CHECK(send(scene.record(1)).empty());
  CHECK(scene.count("drop_stag") == 1);
  CHECK(scene.errors().size() == 1);
  CHECK(send(Segment{.payload = pattern(100, 2)}).empty());
  CHECK(scene.count("drop_no_receive") == 1);
  CHECK(send(scene.request(scene.region.rkey(), scene.region.base(), 10)).empty());
  CHECK(send(Control{.type = kEcho, .content = pattern(24, 1)}).empty());
  CHECK(send(error_about(scene.record(1), 1, 1, 0)).empty());
  CHECK(scene.count("drop_group") == 3);
  CHECK(scene.count("errors_sent") == 0);
}

TEST_CASE("neither control messages nor what has a wrong CRC is answered") {
  ErrorScene scene;
  const std::vector<std::byte> cookie(24);
  for (uint8_t type = 0; type < 6; ++type)
    for (const size_t length : {0U, 3U, 4U, 16U, 24U, 40U, 200U})
      CHECK(scene.send(Control{.type = type, .content = pattern(length, length)}).empty());
  CHECK(scene.send(error_about(scene.record(1), 1, 1, 0)).empty());
  CHECK(scene.send(Control{.type = kChallenge, .content = cookie}).empty());
  for (Segment bad : {scene.record(1), scene.request(1), Segment{.payload = pattern(100, 2)}}) {
    bad.crc_error = 1;
    CHECK(scene.send(bad).empty());
  }
  CHECK(scene.count("drop_crc") == 3);
  CHECK(scene.count("errors_sent") == 0);
}
