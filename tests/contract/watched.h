// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "contract/pair.h"

/// Connections that fail, and are told to have failed.
namespace diwarp::contract {

/// A connection whose events are watched on both sides, with receives posted on both.
struct Watched : Pair {
  explicit Watched(Access access_of_b = kOpen, const StreamOptions& stream_of_b = {})
      : Pair({}, {.access = access_of_b, .stream = stream_of_b}),
        events_a(device_a),
        events_b(device_b) {
    a.post_receives(2, 100);
  }

  /// Both sides' connections end, with an event each, and a's receives are flushed.
  void check_ended() {
    CHECK(a.qp.wait_disconnected(kPatience));
    CHECK(b.qp.wait_disconnected(kPatience));
    CHECK(a.qp.state() == QpState::error);
    CHECK(b.qp.state() == QpState::error);
    CHECK(next_end(events_a) == a.qp.number());
    CHECK(next_end(events_b) == b.qp.number());
    for (uint64_t i = 0; i < 2; ++i) {
      const WorkCompletion flushed = next(a.recv_cq);
      CHECK(flushed.status == WcStatus::wr_flush_error);
      CHECK(flushed.opcode == WcOpcode::recv);
      CHECK(flushed.wr_id == i);
      CHECK(flushed.qp_number == a.qp.number());
    }
  }
  void check_write_refused(size_t length, RemoteMemory remote) {
    a.fill(0, length, 1);
    REQUIRE_FALSE(a.write(0, length, remote));
    check_ended();
    CHECK(b.is_zero(0, b.pages.bytes().size()));
  }
  void check_read_refused(size_t length, RemoteMemory remote) {
    b.fill(0, 100, 1);
    REQUIRE_FALSE(a.read(0, length, remote, 6));
    const WorkCompletion failed = next(a.send_cq);
    CHECK(failed.status != WcStatus::success);
    CHECK(failed.wr_id == 6);
    CHECK(failed.opcode == WcOpcode::rdma_read);
    CHECK(failed.qp_number == a.qp.number());
    check_ended();
    CHECK(a.is_zero(0, length));
  }
  /// An STag that named memory of b's.
  RemoteMemory stale() {
    const RemoteMemory remote = b.remote();
    b.mr.reset();
    return remote;
  }

  EventQueue events_a;
  EventQueue events_b;
};

/// Memory of another protection domain of b's device.
struct Foreign {
  explicit Foreign(const Device& device) : pd(device), region(pd, pages.bytes(), kOpen) {}
  Pages pages{4096};
  ProtectionDomain pd;
  MemoryRegion region;
};

}  // namespace diwarp::contract
