// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "bridge/fake.h"

/// Queue pairs over datagrams beside those that are connected, on the same devices.
namespace diwarp::bridge_test {

/// Two hardware devices of one name.
struct Devices {
  explicit Devices(const DeviceOptions& options = {})
      : a(open_hardware(options)), b(open_hardware(options)) {}
  Device a;
  Device b;
};

/// A UD queue pair in a party's protection domain, for messages in its memory.
struct Datagrams {
  Datagrams(const Device& device, Party& its_party, uint32_t entries = 256)
      : party(its_party),
        send_cq(device, entries),
        recv_cq(device, entries),
        qp(party.pd, {.type = QpType::ud, .send_cq = send_cq, .recv_cq = recv_cq}) {}

  std::error_code send(const Datagrams& to, size_t offset, size_t length, uint64_t wr_id = 0) {
    return qp.post_send(
        {.wr_id = wr_id, .sges = party.mr->sge(offset, length), .destination = to.qp.address()});
  }
  std::error_code write_record(const Datagrams& to, size_t offset, size_t length,
                               RemoteMemory remote) {
    return qp.post_write_record(
        {.sges = party.mr->sge(offset, length), .destination = to.qp.address(), .remote = remote});
  }
  std::error_code read(const Datagrams& from, size_t offset, size_t length, RemoteMemory remote) {
    return qp.post_read({.sges = party.mr->sge(offset, length),
                         .destination = from.qp.address(),
                         .remote = remote});
  }

  Party& party;
  CompletionQueue send_cq;
  CompletionQueue recv_cq;
  QueuePair qp;
};

/// A message of a few bytes gets from `from` to `to`.
inline void check_datagram(Datagrams& from, Datagrams& to, uint64_t key = 1) {
  to.party.clear();
  REQUIRE_FALSE(to.qp.post_recv({.wr_id = 77, .sges = to.party.mr->sge(0, 100)}));
  from.party.fill(200, 50, key);
  REQUIRE_FALSE(from.send(to, 200, 50, 78));
  const WorkCompletion received = next_good(to.recv_cq);
  CHECK(received.wr_id == 77);
  CHECK(received.byte_count == 50);
  CHECK(to.party.holds(0, 50, key));
  CHECK(next_good(from.send_cq).wr_id == 78);
}

/// A Write-Record of 100 bytes comes into the party's region, at this offset.
inline void check_record(Datagrams& from, Datagrams& to, size_t offset, uint64_t key = 2) {
  from.party.fill(0, 100, key);
  const RemoteMemory remote = to.party.remote(offset);
  REQUIRE_FALSE(from.write_record(to, 0, 100, remote));
  next_good(from.send_cq);
  const WorkCompletion received = next_good(to.recv_cq);
  CHECK(received.opcode == WcOpcode::recv_write_record);
  CHECK(received.stag == remote.stag);
  CHECK(received.valid_bytes == 100);
  CHECK(to.party.holds(offset, 100, key));
}

/// Whether a Read of 100 bytes of the party's region over datagrams brings them.
inline bool can_read(Datagrams& reader, Datagrams& from, RemoteMemory remote) {
  REQUIRE_FALSE(reader.read(from, 0, 100, remote));
  return next(reader.send_cq).status == WcStatus::success;
}

}  // namespace diwarp::bridge_test
