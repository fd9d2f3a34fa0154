// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stack/rc_support.h"

/// A plain socket that breaks the rules, and what has to hold whatever it does: the Terminate says
/// what was wrong, nothing was written, and everybody else is served as before. All bytes are made
/// here, from the layouts of RFC 5041 section 4 and RFC 5040 section 4.
namespace diwarp::test {

/// One ULPDU. The defaults are those of a Send of no bytes; any field can be made wrong.
struct Wire {
  bool tagged = false;
  bool last = true;
  uint8_t reserved = 0;  // of DDP's control octet, 4 bits
  uint8_t ddp_version = 1;
  uint8_t rdmap_version = 1;
  uint8_t rdmap_reserved = 0;
  uint8_t opcode = 3;
  uint32_t stag = 0;    // tagged
  uint64_t offset = 0;  // tagged
  uint32_t word = 0;    // untagged: STag to invalidate, else reserved
  uint32_t queue = 0;   // untagged
  uint32_t msn = 1;     // untagged
  uint32_t mo = 0;      // untagged
  std::vector<std::byte> body = {};
};

inline std::vector<std::byte> to_ulpdu(const Wire& wire) {
  std::vector<std::byte> out;
  append(out,
         (wire.tagged ? 0x80U : 0U) | (wire.last ? 0x40U : 0U) | uint64_t{wire.reserved} << 2 |
             wire.ddp_version,
         1);
  append(out, uint64_t{wire.rdmap_version} << 6 | uint64_t{wire.rdmap_reserved} << 4 | wire.opcode,
         1);
  if (wire.tagged) {
    append(out, wire.stag, 4);
    append(out, wire.offset, 8);
  } else {
    for (const uint32_t word : {wire.word, wire.queue, wire.msn, wire.mo}) append(out, word, 4);
  }
  out.insert(out.end(), wire.body.begin(), wire.body.end());
  return out;
}

inline Wire write_of(uint32_t stag, uint64_t offset, size_t length) {
  return {.tagged = true,
          .opcode = 0,
          .stag = stag,
          .offset = offset,
          .body = std::vector<std::byte>(length, std::byte{0xEE})};
}

inline Wire read_of(uint32_t stag, uint64_t offset, uint32_t length, uint32_t msn = 1) {
  Wire wire{.opcode = 1, .queue = 1, .msn = msn};
  append(wire.body, 0x11223344, 4);  // sink
  append(wire.body, 0x1000, 8);
  append(wire.body, length, 4);
  append(wire.body, stag, 4);
  append(wire.body, offset, 8);
  return wire;
}

inline Wire atomic_of(uint32_t stag, uint64_t offset, uint32_t operation = 0) {
  Wire wire{.opcode = 10, .queue = 1};
  append(wire.body, operation, 4);
  append(wire.body, 77, 4);  // request identifier
  append(wire.body, stag, 4);
  append(wire.body, offset, 8);
  append(wire.body, 1, 8);  // what is added
  for (int i = 0; i < 3; ++i) append(wire.body, 0, 8);
  return wire;
}

/// A ULPDU in its FPDU (RFC 5044 section 4). The padding has to be zero, but nobody may rely on it.
inline std::vector<std::byte> framed(const std::vector<std::byte>& ulpdu, uint32_t crc_error = 0,
                                     std::byte padding = std::byte{0}) {
  std::vector<std::byte> out;
  append(out, ulpdu.size(), 2);
  out.insert(out.end(), ulpdu.begin(), ulpdu.end());
  while (out.size() % 4 != 0) out.push_back(padding);
  const uint32_t crc = castagnoli(out) ^ crc_error;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::byte>(crc >> shift));
  return out;
}

inline uint64_t number(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<uint64_t>(byte);
  return value;
}

/// A Terminate as it stands on the wire (RFC 5040 section 4.8).
struct SeenTerminate {
  std::string code;                  // layer/type/code, in decimal; empty: there was none
  unsigned flags = 0;                // M 4, D 2, R 1
  uint64_t segment_length = 0;       // with M
  std::vector<std::byte> headers{};  // with D and R
};

/// Looks for a Terminate among the FPDUs that came.
inline SeenTerminate terminate_in(std::span<const std::byte> stream) {
  while (stream.size() >= 2) {
    const size_t ulpdu = number(stream.first(2));
    const size_t whole = (2 + ulpdu + 3) / 4 * 4 + 4;
    if (stream.size() < whole) return {};
    const auto body = stream.subspan(2, ulpdu);
    const bool terminate = ulpdu >= 22 && body[1] == std::byte{0x47};
    if (!terminate) {
      stream = stream.subspan(whole);
      continue;
    }
    CHECK(same(body.first(18), hex("414700000000000000020000000100000000")));
    CHECK(stream.size() == whole);  // nothing follows it
    SeenTerminate found;
    const uint64_t control = number(body.subspan(18, 4));
    found.code = std::to_string(control >> 28) + '/' + std::to_string(control >> 24 & 15) + '/' +
                 std::to_string(control >> 16 & 255);
    found.flags = static_cast<unsigned>(control >> 13 & 7);
    CHECK((control & 0x1FFF) == 0);
    if (ulpdu >= 24) found.segment_length = number(body.subspan(22, 2));
    if (ulpdu > 24) found.headers.assign(body.begin() + 24, body.end());
    return found;
  }
  return {};
}

/// A device that is attacked: a listener, a queue pair for each attack, memory that peers may and
/// may not use, and two connected queue pairs that must not notice anything.
class Fortress {
 public:
  static constexpr size_t kBytes = 4096;

  Fortress()
      : device(Device::open("127.0.0.1")),
        listener(device, 0),
        first(device),
        second(device),
        other_domain(device) {
    connect(first, second, device);
  }

  /// Connects a plain socket to a fresh queue pair, which has receives for `receives` bytes each.
  void face(size_t receives = 1, size_t length = 100) {
    peer.reset();
    victim.reset();
    victim.emplace(device, RcOptions{.memory = kBytes,
                                     .access = kOpen,
                                     .stream = {.receive_not_ready = ReceiveNotReady::terminate}});
    victim->fill(before());
    closed.emplace(victim->pd, std::span(closed_memory), Access::local_write);
    foreign.emplace(other_domain, std::span(foreign_memory), kOpen);
    victim->post_receives(receives, length);
    peer.emplace(RawStream::connect(listener.address()));
    REQUIRE(peer->send(to_bytes(MpaFrame{})));
    auto request = listener.get_request(kPatience);
    REQUIRE(request);
    request->accept(victim->qp);
    REQUIRE(peer->receive(20) == to_bytes(MpaFrame{.reply = true}));
  }

  void send(const Wire& wire) { peer->send(framed(to_ulpdu(wire))); }

  /// The bytes that came until the stream ended, which it must.
  SeenTerminate seen_terminate() {
    const auto came = peer->receive(1 << 16);
    CHECK(victim->qp.wait_disconnected(kPatience));
    CHECK(victim->qp.state() == QpState::error);
    return terminate_in(came);
  }

  /// Nothing was written anywhere, and the others still work.
  void check_unharmed() {
    CHECK(same(victim->memory, before()));
    CHECK(same(closed_memory, std::vector<std::byte>(kBytes)));
    CHECK(same(foreign_memory, std::vector<std::byte>(kBytes)));
    check_bystanders();
  }
  void check_bystanders() {
    REQUIRE_FALSE(second.post_recv(round, 0, 8));
    REQUIRE_FALSE(first.send(0, 8, round));
    CHECK(next(second.recv_cq).status == WcStatus::success);
    CHECK(next(first.send_cq).status == WcStatus::success);
    ++round;
  }

  static std::vector<std::byte> before() { return pattern(kBytes, 99); }
  uint32_t stag() const { return victim->mr->rkey(); }
  uint64_t base() const { return victim->mr->base(); }

  Device device;
  Listener listener;
  RcParty first;
  RcParty second;
  ProtectionDomain other_domain;
  std::vector<std::byte> closed_memory = std::vector<std::byte>(kBytes);
  std::vector<std::byte> foreign_memory = std::vector<std::byte>(kBytes);
  std::optional<RcParty> victim;
  std::optional<MemoryRegion> closed;   // peers have no rights
  std::optional<MemoryRegion> foreign;  // all rights, but in another protection domain
  std::optional<RawStream> peer;
  uint64_t round = 0;
};

/// The bytes that a Terminate carries of the segment that it is about.
enum class Shown : uint8_t { nothing, ddp_header, request };

/// The peer sends this one ULPDU, and this is what has to come back.
inline void check_refused(Fortress& fortress, const std::string& what,
                          const std::vector<std::byte>& ulpdu, const std::string& code,
                          Shown shown) {
  CAPTURE(what);
  fortress.peer->send(framed(ulpdu));
  const SeenTerminate terminate = fortress.seen_terminate();
  CHECK(terminate.code == code);
  fortress.check_unharmed();
  if (shown == Shown::nothing) {
    CHECK(terminate.flags == 0);
    CHECK(terminate.headers.empty());
    return;
  }
  const size_t header = (ulpdu[0] & std::byte{0x80}) != std::byte{0} ? 14 : 18;
  const size_t length = shown == Shown::request ? ulpdu.size() : header;
  CHECK(terminate.flags == (shown == Shown::request ? 7 : 6));
  CHECK(terminate.segment_length == ulpdu.size());
  CHECK(same(terminate.headers, std::span(ulpdu).first(length)));
  CHECK(terminate.headers.size() == length);
}

inline void check_refused(Fortress& fortress, const std::string& what, const Wire& wire,
                          const std::string& code, Shown shown) {
  check_refused(fortress, what, to_ulpdu(wire), code, shown);
}

}  // namespace diwarp::test
