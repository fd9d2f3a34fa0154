// SPDX-License-Identifier: Apache-2.0
// Requests that need nothing sent, and what becomes of memory when a Send is delivered.
#include "support/catch.h"

#include "parts.h"
#include "rnic/datagram/record_table.h"
#include "rnic/datagram/send_completion.h"
#include "rnic/queues/local_operation.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

struct Fixture : Memory {
  WcStatus run(const SendWorkRequest& request) {
    REQUIRE_FALSE(sends.queue.post(request));
    const WcStatus status = do_local(protection, *sends.queue.pending());
    sends.queue.complete(status);
    return status;
  }
  SendEntry& entry(const SendWorkRequest& request) {
    REQUIRE_FALSE(sends.queue.post(request));
    return sends.queue.hand_over();
  }
  MemoryBinding binding(STag stag, uint64_t length, Access access = Access::remote_read) {
    return {.stag = stag,
            .region = region,
            .address = canvas.at(10),
            .length = length,
            .access = access,
            .base = 500};
  }
  bool is_valid(STag stag) {
    const ddp::Region* const found = protection.find(stag);
    return found != nullptr && found->valid;
  }
  void open_record(STag stag) {
    rdmap::DatagramSegment segment;
    segment.opcode = rdmap::Opcode::write_record;
    segment.stag = stag;
    segment.message_length = 9;
    segment.payload = bytes_of("abc");
    REQUIRE_FALSE(records.handle(segment, source, kNow).drop);
  }

  Sends sends;
  Receives receives;
  Counters counters;
  LoggedCounters logged{counters};
  STag region = add(0, Canvas::kSize);
  RecordSource source{{.address = Address::parse("10.0.0.1:7")}, ddp::ClosedMessages()};
  RecordTable records{{protection, receives.buffers, receives.cq, counters}, {}, true};
};

}  // namespace

TEST_CASE("local operations: a window is bound, unbound and bound anew") {
  Fixture f;
  const STag window = f.add_window();
  CHECK(f.run({.opcode = WrOpcode::bind_window, .binding = f.binding(window, 10)}) ==
        WcStatus::success);
  CHECK(f.protection.check_tagged(window, Access::remote_read, 500, 10).fault ==
        ddp::RegionFault::none);
  CHECK(f.run({.opcode = WrOpcode::bind_window, .binding = f.binding(window, 10)}) ==
        WcStatus::window_bind_error);
  CHECK(f.run({.opcode = WrOpcode::bind_window, .binding = f.binding(window, 0)}) ==
        WcStatus::success);
  CHECK_FALSE(f.is_valid(window));
  CHECK(f.run({.opcode = WrOpcode::bind_window, .binding = f.binding(window ^ 7, 10)}) ==
        WcStatus::success);
  CHECK(f.is_valid(window ^ 7));
  CHECK(f.protection.find(window) == nullptr);
}

TEST_CASE("local operations: a window does not reach beyond its region, nor grant more than it") {
  Fixture f;
  const STag window = f.add_window();
  const auto bind = [&](const MemoryBinding& binding) {
    return f.run({.opcode = WrOpcode::bind_window, .binding = binding});
  };
  CHECK(bind(f.binding(window, Canvas::kSize - 9)) == WcStatus::window_bind_error);
  f.region = f.add(0, Canvas::kSize, Access::window_bind);
  CHECK(bind(f.binding(window, 10, Access::remote_write)) == WcStatus::window_bind_error);
  CHECK(bind(f.binding(window, 10, Access::remote_read)) == WcStatus::success);
  f.region = f.add(0, Canvas::kSize, Access::local_write);
  CHECK(bind(f.binding(f.add_window(), 10)) == WcStatus::window_bind_error);
}

TEST_CASE("local operations: a fast registration takes the memory and the key that are asked for") {
  Fixture f;
  const STag stag = f.stags.insert(
      {.protection_domain = kDomain, .kind = ddp::EntryKind::fast_registration, .max_length = 20});
  CHECK(f.run({.opcode = WrOpcode::register_memory, .binding = f.binding(stag ^ 1, 21)}) ==
        WcStatus::window_bind_error);
  CHECK(f.run({.opcode = WrOpcode::register_memory, .binding = f.binding(stag ^ 1, 20)}) ==
        WcStatus::success);
  CHECK(f.is_valid(stag ^ 1));
  CHECK(f.run({.opcode = WrOpcode::local_invalidate, .invalidate_stag = stag}) ==
        WcStatus::window_bind_error);  // its old key
  CHECK(f.run({.opcode = WrOpcode::local_invalidate, .invalidate_stag = stag ^ 1}) ==
        WcStatus::success);
  CHECK_FALSE(f.is_valid(stag ^ 1));
}

TEST_CASE(
    "local operations: an STag invalidated twice stays so, and one that is not there is an error") {
  Fixture f;
  for (int i = 0; i < 2; ++i)
    CHECK(f.run({.opcode = WrOpcode::local_invalidate, .invalidate_stag = f.region}) ==
          WcStatus::success);
  CHECK(f.run({.opcode = WrOpcode::local_invalidate, .invalidate_stag = f.region ^ 1}) ==
        WcStatus::window_bind_error);
}

TEST_CASE(
    "local operations: over datagrams an invalidation ends the records there, if it is done") {
  Fixture f;
  const STag foreign = f.add(0, 10, kAllRights, 0, kDomain + 1);
  f.open_record(f.region);
  const auto run = [&](STag stag) {
    return do_local(f.protection, f.records,
                    f.entry({.opcode = WrOpcode::local_invalidate, .invalidate_stag = stag}));
  };
  CHECK(run(foreign) == WcStatus::window_bind_error);
  CHECK(f.records.open_count() == 1);
  CHECK(run(f.region) == WcStatus::success);
  CHECK(f.records.open_count() == 0);
}

TEST_CASE("local operations: other operations leave the records alone") {
  Fixture f;
  f.open_record(f.region);
  CHECK(do_local(f.protection, f.records,
                 f.entry({.opcode = WrOpcode::bind_window,
                          .invalidate_stag = f.region,
                          .binding = f.binding(f.add_window(), 10)})) == WcStatus::success);
  CHECK(f.records.open_count() == 1);
}

TEST_CASE("local operations: inline data need no memory, and other data do") {
  Fixture f;
  const Sge unknown = f.sge(f.region ^ 1, 0, 4);
  CHECK_FALSE(may_send(f.protection, f.entry({.sges = unknown})));
  CHECK(may_send(f.protection, f.entry({.sges = unknown, .flags = SendFlags::inline_data})));
  CHECK(may_send(f.protection, f.entry({.sges = f.sge(f.region, 0, 4)})));
}

TEST_CASE("local operations: the completion of a delivered Send says what its last segment says") {
  Fixture f;
  rdmap::DatagramSegment last;
  last.opcode = rdmap::Opcode::send_solicited;
  last.has_immediate = true;
  last.immediate = 77;
  const auto plain =
      delivered_send(f.protection, f.records, f.logged, last, f.source.key.address, 1000);
  CHECK(plain.solicited);
  CHECK(plain.has_immediate);
  CHECK(plain.immediate == 77);
  CHECK(plain.byte_count == 1000);
  CHECK(plain.source == f.source.key.address);
  CHECK_FALSE(plain.invalidated);
  CHECK(f.counters.get(Counter::drop_stag) == 0);
}

TEST_CASE("local operations: a Send's invalidation that is refused ends no record") {
  Fixture f;
  f.open_record(f.region);
  rdmap::DatagramSegment last;
  last.opcode = rdmap::Opcode::send_invalidate;
  last.invalidate_stag = f.region;  // without the right
  const auto refused =
      delivered_send(f.protection, f.records, f.logged, last, f.source.key.address, 0);
  CHECK_FALSE(refused.invalidated);
  CHECK(refused.invalidated_stag == 0);
  CHECK(f.records.open_count() == 1);
  CHECK(f.counters.get(Counter::drop_stag) == 1);
}
