// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"
#include "stack/rd_sequence.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Many peers of one RD queue pair, written by the book and kept small.
class Crowd {
 public:
  Crowd(World& world, const Address& target, size_t count) : world_(world), target_(target) {
    links_.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const std::string host =
          "10.9." + std::to_string(i / 200) + "." + std::to_string(1 + i % 200);
      links_.push_back(world.network->open(Address::parse(host + ":7000")));
    }
  }

  size_t size() const { return links_.size(); }
  Address address(size_t i) const { return links_[i]->local_address(); }
  void send(size_t i, const std::vector<std::byte>& datagram) {
    const ConstBytes piece(datagram);
    const llp::OutgoingDatagram outgoing{target_, {&piece, 1}};
    if (links_[i]->send({&outgoing, 1}).sent != 1) FAIL("a datagram was refused");
  }
  /// Calls `step` for each, and lets the target take what came after every hundredth.
  template <class Step, class Settled>
  void each(Step&& step, Settled&& settled) {
    constexpr size_t kGroup = 100;
    for (size_t begin = 0; begin < size(); begin += kGroup) {
      for (size_t i = begin; i < begin + kGroup; ++i) step(i);
      world_.settle();
      for (size_t i = begin; i < begin + kGroup; ++i) settled(i);
    }
    world_.settle();
  }
  /// The last datagram that came; empty if none did.
  std::vector<std::byte> take(size_t i) {
    std::vector<std::byte> latest;
    while (links_[i]->receive(batch_) != 0)
      for (const llp::IncomingDatagram& one : batch_.datagrams())
        latest.assign(one.bytes.begin(), one.bytes.end());
    return latest;
  }
  static uint32_t word(const std::vector<std::byte>& from, size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(from.at(at + i));
    return value;
  }
  static ReliableHeader open(uint32_t peer_incarnation, const std::vector<std::byte>& cookie) {
    return {.kind = kRdOpen,
            .window = 100,
            .epoch = 1,
            .peer_incarnation = peer_incarnation,
            .content = challenge_content(7, cookie)};
  }

 private:
  World& world_;
  const Address target_;
  std::vector<std::unique_ptr<llp::DatagramLink>> links_;
  llp::ReceiveBatch batch_{64, 2048, 64};
};

constexpr uint32_t kCrowd = 77;  // the incarnation of all of them

}  // namespace

TEST_CASE("rd: ten thousand idle peers cost at most 1,512 bytes each") {
  World world({.queue_datagrams = 512});
  Device& device = world.add_device();
  Party target(device, rd_options({.reliable = {.idle_timeout = 1h,
                                                .max_peers_per_address = 10000,
                                                .max_buffer = size_t{128} << 20}}));
  Crowd crowd(world, target.address(), 10000);
  struct Known {
    std::vector<std::byte> cookie = std::vector<std::byte>(16);
    uint32_t incarnation = 0;
    uint32_t epoch = 0;

    // Numbers of the n-th datagram of each side, counted from 1.
    uint32_t number(uint32_t n) const {
      return first_number({kCrowd, 1}, {incarnation, epoch}) + n - 1;
    }
    uint32_t target_number(uint32_t n) const {
      return first_number({incarnation, epoch}, {kCrowd, 1}) + n - 1;
    }
  };
  std::vector<Known> known(crowd.size());
  crowd.each([&](size_t i) { crowd.send(i, to_bytes(kCrowd, Crowd::open(0, known[i].cookie))); },
             [&](size_t i) {
               const auto challenge = crowd.take(i);
               known[i].incarnation = Crowd::word(challenge, 4);
               std::copy_n(challenge.begin() + 20, 16, known[i].cookie.begin());
             });
  REQUIRE(target.qp.peers().empty());

  const size_t before = allocated_bytes();
  crowd.each(
      [&](size_t i) {
        crowd.send(i, to_bytes(kCrowd, Crowd::open(known[i].incarnation, known[i].cookie)));
      },
      [&](size_t i) { known[i].epoch = Crowd::word(crowd.take(i), 12); });
  const auto header = [&](size_t i, uint8_t kind, uint32_t sequence, uint32_t acknowledged) {
    return ReliableHeader{.kind = kind,
                          .window = 100,
                          .epoch = 1,
                          .peer_epoch = known[i].epoch,
                          .peer_incarnation = known[i].incarnation,
                          .sequence = kind == kRdData ? known[i].number(sequence) : 0,
                          .acknowledged = known[i].target_number(acknowledged)};
  };
  // A message each way; the one that comes, with its second half first.
  size_t received = 0;
  crowd.each(
      [&](size_t i) {
        static_cast<void>(target.post_recv(i, 0, 200));
        for (const uint32_t sequence : {2U, 1U}) {
          Segment half{.incarnation = kCrowd,
                       .msn = 1,
                       .payload = std::vector<std::byte>(100),
                       .datagram_class = 1};
          half.offset = (sequence - 1) * 100;
          half.last = sequence == 2;
          half.rd_header = to_bytes(header(i, kRdData, sequence, 0));
          crowd.send(i, to_bytes(half));
        }
      },
      [&](size_t) { received += drain(target.recv_cq).size(); });
  CHECK(received == crowd.size());
  size_t sent = 0;
  crowd.each([&](size_t i) { static_cast<void>(target.send(crowd.address(i), 0, 64, i)); },
             [&](size_t i) {
               crowd.take(i);
               crowd.send(i, to_bytes(kCrowd, header(i, kRdAcknowledgement, 0, 1)));
               if (i % 100 != 99) return;
               world.settle();
               sent += drain(target.send_cq).size();
             });
  CHECK(sent == crowd.size());
  for (int i = 0; i < 3000; ++i) world.advance(2ms);  // their timers, a few at a time
  const size_t bytes = allocated_bytes() - before;
  CHECK(target.qp.peers().size() == crowd.size());
  INFO(bytes / crowd.size() << " bytes a peer");
  CHECK(bytes <= crowd.size() * 1512);
  CHECK(bytes > crowd.size() * 200);  // or nothing was measured
}

TEST_CASE("rd: messages allocate nothing once it is warm") {
  RdScene scene({}, {.memory = 1 << 20});
  const size_t size = GENERATE(size_t{0}, size_t{64}, size_t{5000}, size_t{400'000});
  CAPTURE(size);
  std::array<WorkCompletion, 8> batch;
  const auto exchange = [&](int messages) {
    int done = 0;
    for (int i = 0; i < messages; ++i) {
      static_cast<void>(scene.b.post_recv(0, 0, size));
      static_cast<void>(scene.a.send(scene.b.address(), 0, size));
      size_t sent = 0;
      size_t received = 0;
      for (int step = 0; step < 1000 && (sent == 0 || received == 0); ++step) {
        scene.world.advance(10us);
        sent += scene.a.send_cq.poll(batch);
        received += scene.b.recv_cq.poll(batch);
      }
      done += sent == 1 && received == 1 ? 1 : 0;
    }
    return done;
  };
  REQUIRE(exchange(50) == 50);
  const size_t before = allocations();
  const int done = exchange(300);
  const size_t made = allocations() - before;
  CHECK(done == 300);
  CHECK(made == 0);
}

TEST_CASE("rd: a message that waited for a receive is freed when its peer is forgotten") {
  RdScene scene({}, {.send_entries = 1024,
                     .capacity = {.max_send_wr = 1024, .max_recv_wr = 256},
                     .reliable = {.peer_timeout = 2s, .idle_timeout = 1s}});
  const auto wait = [&](Duration time) { scene.run([] { return false; }, time, 10ms); };
  scene.b.post_receives(200, 64);
  for (int i = 0; i < 200; ++i)
    REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1, SendFlags::none));
  wait(30s);
  REQUIRE(scene.b.qp.peers().empty());
  const size_t before = allocated_bytes();
  for (int i = 0; i < 1000; ++i)
    REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1, SendFlags::none));
  wait(2s);
  REQUIRE(allocated_bytes() > before + (300 << 10));
  scene.a.qp.modify(QpState::error);
  drain(scene.a.send_cq);
  wait(30s);
  REQUIRE(scene.b.qp.peers().empty());
  CHECK(allocated_bytes() < before + (64 << 10));
}
