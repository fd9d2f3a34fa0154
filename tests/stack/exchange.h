// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "stack/rc_support.h"
#include "stack/rd_scene.h"

/// Small and large messages by every operation, between two parties that somebody steps: the common
/// part of the tests of failing links below. Contents are compared, every work request has to
/// complete.
namespace diwarp::test {

/// Lets some time pass.
using Step = std::function<void()>;

/// The next completion of the queue, however many steps it takes; none if it never comes.
inline std::optional<WorkCompletion> completion_of(CompletionQueue& cq, const Step& step) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::array<WorkCompletion, 1> one;
  while (cq.poll(one) == 0) {
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    step();
  }
  return std::move(one[0]);
}

inline constexpr size_t kLargeMessage = size_t{1} << 20;
inline constexpr std::array kMessageSizes = {size_t{0}, size_t{1}, size_t{64}, size_t{3000},
                                             kLargeMessage};

/// Two parties over datagrams, or two that are connected.
template <class AParty>
struct Exchange {
  AParty& a;
  AParty& b;
  Address to;  // of b; unused where they are connected
  Step step;

  void demand_success(CompletionQueue& cq) const {
    const auto done = completion_of(cq, step);
    REQUIRE(done);
    REQUIRE(done->status == WcStatus::success);
  }

  void send(size_t size, uint64_t seed) const {
    CAPTURE(size);
    const auto contents = pattern(size, seed);
    a.fill(contents);
    std::fill(b.memory.begin(), b.memory.end(), std::byte{0});
    REQUIRE_FALSE(b.post_recv(seed, 0, kLargeMessage));
    const Sge sge = sge_of(a, size);
    REQUIRE_FALSE(a.qp.post_send(
        {.wr_id = seed, .sges = {&sge, 1}, .flags = SendFlags::signaled, .destination = to}));
    demand_success(a.send_cq);
    const auto received = completion_of(b.recv_cq, step);
    REQUIRE(received);
    REQUIRE(received->status == WcStatus::success);
    REQUIRE(received->byte_count == size);
    REQUIRE(same(b.bytes(0, size), contents));
  }

  /// Write-Record over datagrams; RDMA Write else.
  void write(size_t size, uint64_t seed, const MemoryRegion& region) const {
    CAPTURE(size);
    const auto contents = pattern(size, seed);
    a.fill(contents);
    std::fill(b.memory.begin(), b.memory.end(), std::byte{0});
    exclude_target_thread();
    const Sge sge = sge_of(a, size);
    REQUIRE_FALSE(
        a.qp.post_send({.wr_id = seed,
                        .sges = {&sge, 1},
                        .flags = SendFlags::signaled,
                        .destination = to,
                        .opcode = connected() ? WrOpcode::rdma_write : WrOpcode::write_record,
                        .remote = {region.rkey(), region.base()}}));
    demand_success(a.send_cq);
    if (connected()) {
      // A Write tells its target nothing; a message after it does.
      REQUIRE_FALSE(b.post_recv(seed, kLargeMessage, 8));
      REQUIRE_FALSE(a.qp.post_send({.wr_id = seed, .flags = SendFlags::signaled}));
      demand_success(a.send_cq);
      demand_success(b.recv_cq);
    } else {
      const auto record = completion_of(b.recv_cq, step);
      REQUIRE(record);
      REQUIRE(record->validity.complete());
      REQUIRE(record->valid_bytes == size);
    }
    REQUIRE(same(b.bytes(0, size), contents));
  }

  void read(size_t size, uint64_t seed, const MemoryRegion& region) const {
    CAPTURE(size);
    const auto contents = pattern(size, seed);
    b.fill(contents);
    exclude_target_thread();
    std::fill(a.memory.begin(), a.memory.end(), std::byte{0});
    const Sge sge = sge_of(a, size);
    REQUIRE_FALSE(a.qp.post_send({.wr_id = seed,
                                  .sges = {&sge, 1},
                                  .flags = SendFlags::signaled,
                                  .destination = to,
                                  .opcode = WrOpcode::rdma_read,
                                  .remote = {region.rkey(), region.base()}}));
    demand_success(a.send_cq);
    if (!connected()) await_acknowledged();
    exclude_target_thread();
    REQUIRE(same(a.bytes(0, size), contents));
  }

  void all(const MemoryRegion& region) const {
    uint64_t seed = 1;
    for (const size_t size : kMessageSizes) {
      send(size, ++seed);
      write(size, ++seed, region);
      read(size, ++seed, region);
    }
  }

 private:
  bool connected() const { return to == Address(); }

  /// Over RD the target sends a response again, and reads its memory for that, until it knows that
  /// the response came.
  void await_acknowledged() const {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    const auto in_flight = [this] {
      uint32_t datagrams = 0;
      for (const ReliablePeer& peer : b.qp.peers()) datagrams += peer.in_flight;
      return datagrams;
    };
    while (in_flight() != 0 && std::chrono::steady_clock::now() < deadline) step();
    REQUIRE(in_flight() == 0);
  }

  /// The target's RNIC thread touches its memory after what is done here before a request, and
  /// before what is done after the request's completion. The order is made by messages, which
  /// ThreadSanitizer cannot see.
  void exclude_target_thread() const { b.qp.query(); }

  static const MemoryRegion& region_of(Party& party) { return party.mr; }
  static const MemoryRegion& region_of(RcParty& party) { return *party.mr; }
  static Sge sge_of(AParty& party, size_t size) { return region_of(party).sge(0, size); }
};

/// Room for the large message, and something behind it.
inline constexpr size_t kExchangeMemory = kLargeMessage + 64;

/// Queue pairs over datagrams that are patient: slowness here is no loss.
inline PartyOptions exchange_options(QpType type, uint32_t segment = 1400) {
  PartyOptions options{.memory = kExchangeMemory, .type = type};
  options.datagram.segment = segment;
  options.datagram.message_timeout = 60s;
  options.datagram.record_timeout = 60s;
  options.datagram.read.timeout = 60s;
  return options;
}

}  // namespace diwarp::test
