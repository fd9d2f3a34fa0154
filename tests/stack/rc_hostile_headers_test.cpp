// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_hostile.h"

/// Each field of DDP's and RDMAP's headers, wrong.
namespace diwarp::test {

namespace {

const std::vector<std::byte> kPayload(10, std::byte{0xEE});
constexpr uint8_t kWrongVersions[] = {0, 2, 3};
constexpr uint8_t kUnknownOpcodes[] = {12, 13, 14, 15};
constexpr uint8_t kTaggedOpcodes[] = {0, 2};

/// The opcodes of untagged messages, their queues, and how long their bodies are.
struct Untagged {
  uint8_t opcode;
  uint32_t queue;
  size_t body;
};
constexpr Untagged kUntagged[] = {{1, 1, 28}, {3, 0, 5}, {4, 0, 5}, {5, 0, 5},   {6, 0, 5},
                                  {7, 2, 4},  {8, 0, 8}, {9, 0, 8}, {10, 1, 52}, {11, 3, 12}};

}  // namespace

TEST_CASE("A peer with another DDP version is told so, by model, without headers") {
  Fortress fortress;
  for (const uint8_t version : kWrongVersions) {
    const std::string what = "version " + std::to_string(version);
    fortress.face();
    check_refused(fortress, what, Wire{.ddp_version = version, .body = kPayload}, "1/2/6",
                  Shown::nothing);
    fortress.face();
    Wire write = write_of(fortress.stag(), fortress.base(), 10);
    write.ddp_version = version;
    check_refused(fortress, what, write, "1/1/4", Shown::nothing);
  }
}

TEST_CASE("A peer with another RDMAP version is told so") {
  Fortress fortress;
  for (const uint8_t version : kWrongVersions) {
    const std::string what = "version " + std::to_string(version);
    fortress.face();
    check_refused(fortress, what, Wire{.rdmap_version = version, .body = kPayload}, "0/2/5",
                  Shown::ddp_header);
    fortress.face();
    Wire write = write_of(fortress.stag(), fortress.base(), 10);
    write.rdmap_version = version;
    check_refused(fortress, what, write, "0/2/5", Shown::ddp_header);
  }
}

TEST_CASE("A peer's unknown opcode is refused in either model") {
  Fortress fortress;
  for (const uint8_t opcode : kUnknownOpcodes) {
    const std::string what = "opcode " + std::to_string(opcode);
    fortress.face();
    check_refused(fortress, what, Wire{.opcode = opcode, .body = kPayload}, "0/2/6",
                  Shown::ddp_header);
    fortress.face();
    Wire write = write_of(fortress.stag(), fortress.base(), 10);
    write.opcode = opcode;
    check_refused(fortress, what, write, "0/2/6", Shown::ddp_header);
  }
}

TEST_CASE("A peer's opcode in the other model is refused") {
  Fortress fortress;
  for (const Untagged& untagged : kUntagged) {
    const std::string what = "opcode " + std::to_string(untagged.opcode);
    fortress.face();
    Wire write = write_of(fortress.stag(), fortress.base(), untagged.body);
    write.opcode = untagged.opcode;
    check_refused(fortress, what, write, "0/2/6", Shown::ddp_header);
  }
  for (const uint8_t opcode : kTaggedOpcodes) {
    fortress.face();
    check_refused(fortress, "tagged opcode", Wire{.opcode = opcode, .body = kPayload}, "0/2/6",
                  Shown::ddp_header);
  }
}

TEST_CASE("A peer's untagged message on another queue than its own is refused") {
  Fortress fortress;
  for (const Untagged& untagged : kUntagged) {
    for (const uint32_t queue : {0U, 1U, 2U, 3U, 4U, 0x80000000U, 0xFFFFFFFFU}) {
      if (queue == untagged.queue) continue;
      fortress.face();
      check_refused(fortress,
                    "opcode " + std::to_string(untagged.opcode) + " queue " + std::to_string(queue),
                    Wire{.opcode = untagged.opcode,
                         .queue = queue,
                         .body = std::vector<std::byte>(untagged.body)},
                    "1/2/1", Shown::ddp_header);
    }
  }
}

TEST_CASE("A peer's message sequence number other than the next is refused on every queue") {
  Fortress fortress;
  for (const Untagged& untagged : kUntagged) {
    for (const uint32_t msn : {0U, 2U, 0x80000001U, 0xFFFFFFFFU}) {
      fortress.face();
      check_refused(fortress,
                    "opcode " + std::to_string(untagged.opcode) + " MSN " + std::to_string(msn),
                    Wire{.opcode = untagged.opcode,
                         .queue = untagged.queue,
                         .msn = msn,
                         .body = std::vector<std::byte>(untagged.body)},
                    "1/2/3", Shown::ddp_header);
    }
  }
}

TEST_CASE("A peer's message offset in a first segment other than 0 is refused on every queue") {
  Fortress fortress;
  for (const Untagged& untagged : kUntagged) {
    for (const uint32_t offset : {1U, 0x80000000U, 0xFFFFFFFFU}) {
      fortress.face();
      check_refused(
          fortress,
          "opcode " + std::to_string(untagged.opcode) + " offset " + std::to_string(offset),
          Wire{.opcode = untagged.opcode,
               .queue = untagged.queue,
               .mo = offset,
               .body = std::vector<std::byte>(untagged.body)},
          "1/2/4", Shown::ddp_header);
    }
  }
}

TEST_CASE("A peer's ULPDU that ends inside its header is refused") {
  Fortress fortress;
  for (size_t length = 0; length < 18; ++length) {
    fortress.face();
    check_refused(fortress, "untagged, bytes " + std::to_string(length),
                  first_of(to_ulpdu(Wire{}), length), "0/2/255", Shown::nothing);
  }
  for (size_t length = 1; length < 14; ++length) {
    fortress.face();
    check_refused(fortress, "tagged, bytes " + std::to_string(length),
                  first_of(to_ulpdu(write_of(fortress.stag(), fortress.base(), 0)), length),
                  "0/2/255", Shown::nothing);
  }
}

TEST_CASE("A peer's reserved bits, reserved words and padding are not looked at") {
  Fortress fortress;
  fortress.face(2, 100);
  fortress.send(Wire{.reserved = 15, .rdmap_reserved = 3, .word = 0xFFFFFFFF, .body = kPayload});
  Wire write = write_of(fortress.stag(), fortress.base() + 1000, 7);
  write.reserved = 15;
  write.rdmap_reserved = 3;
  fortress.peer->send(framed(to_ulpdu(write), 0, std::byte{0xFF}));
  fortress.send(Wire{.msn = 2, .body = kPayload});
  CHECK(next(fortress.victim->recv_cq).byte_count == 10);
  CHECK(next(fortress.victim->recv_cq).byte_count == 10);
  CHECK(same(fortress.victim->bytes(1000, 7), std::vector<std::byte>(7, std::byte{0xEE})));
  CHECK(fortress.victim->qp.state() == QpState::rts);
  fortress.check_bystanders();
}

TEST_CASE("A peer's wrong CRC is told without headers, and nothing of its segment is kept") {
  Fortress fortress;
  const bool write = GENERATE(true, false);
  fortress.face(2, 100);
  fortress.send(Wire{});
  CHECK(next(fortress.victim->recv_cq).status == WcStatus::success);
  if (write)
    fortress.peer->send(framed(to_ulpdu(write_of(fortress.stag(), fortress.base(), 64)), 1));
  else
    fortress.peer->send(framed(to_ulpdu(Wire{.msn = 2, .body = kPayload}), 0x80000000));
  const SeenTerminate terminate = fortress.seen_terminate();
  CHECK(terminate.code == "2/0/2");
  CHECK(terminate.flags == 0);
  CHECK(next(fortress.victim->recv_cq).status != WcStatus::success);
  fortress.check_unharmed();
}

TEST_CASE("A peer's FPDU that announces more than ever comes is no message") {
  Fortress fortress;
  for (const size_t length : {19U, 1000U, 65535U}) {
    CAPTURE(length);
    fortress.face();
    std::vector<std::byte> bytes = framed(to_ulpdu(Wire{}));
    bytes[0] = static_cast<std::byte>(length >> 8);
    bytes[1] = static_cast<std::byte>(length);
    fortress.peer->send(bytes);
    fortress.peer->shutdown();
    fortress.seen_terminate();
    CHECK(next(fortress.victim->recv_cq).status == WcStatus::wr_flush_error);
    fortress.check_unharmed();
  }
}

}  // namespace diwarp::test
