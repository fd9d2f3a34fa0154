// SPDX-License-Identifier: Apache-2.0
#include <deque>

#include "stack/rc_support.h"

/// Sends and Writes whose memory the stream reads after it has taken them.
namespace diwarp::test {

namespace {

constexpr size_t kFrom = 1000;
constexpr size_t kLong = 4000;

/// A stream that really does not copy: it reads and hands on the bytes of a zero-copy call when it
/// releases them.
class ZeroCopyStream final : public llp::Stream {
 public:
  explicit ZeroCopyStream(StreamEnd inner) : inner_(std::move(inner)) {}

  bool allow_zero_copy(size_t from, Counters& /*counters*/) override {
    from_ = from;
    return true;
  }
  llp::IoResult send(std::span<const ConstBytes> pieces) override { return take(pieces, false); }
  llp::IoResult send_zero_copy(std::span<const ConstBytes> pieces) override {
    size_t bytes = 0;
    for (const ConstBytes piece : pieces)
      if (piece.size() > llp::kCopiedPiece) bytes += piece.size();
    return take(pieces, bytes >= from_);
  }
  uint64_t zero_copy_calls() const override { return calls_; }
  uint64_t zero_copy_released() override { return released_; }

  /// Releases the oldest `calls`.
  void release_calls(uint64_t calls) {
    released_ += calls;
    uint64_t left = calls;
    while (!waiting_.empty() && (left != 0 || !waiting_.front().zero_copy)) {
      if (waiting_.front().zero_copy) --left;
      hand_on(waiting_.front());
      waiting_.pop_front();
    }
  }
  void release_all() { release_calls(calls_ - released_); }

  llp::IoResult receive(Bytes buffer) override { return inner_->receive(buffer); }
  void shutdown_send() override {
    shut = true;
    inner_->shutdown_send();
  }
  void abort() override {
    aborted = true;
    waiting_.clear();
    inner_->abort();
  }
  size_t maximum_segment() const override { return inner_->maximum_segment(); }
  Address local_address() const override { return inner_->local_address(); }
  Address peer_address() const override { return inner_->peer_address(); }
  void on_ready(std::function<void()> callback) override { inner_->on_ready(std::move(callback)); }

  bool trim() override {
    ++trims;
    return trims < 3;
  }

  bool shut = false;
  bool aborted = false;
  size_t trims = 0;

 private:
  struct Call {
    bool zero_copy = false;
    std::deque<std::vector<std::byte>> copies = {};
    std::vector<ConstBytes> pieces = {};
  };

  llp::IoResult take(std::span<const ConstBytes> pieces, bool zero_copy) {
    Call call{.zero_copy = zero_copy};
    size_t bytes = 0;
    for (ConstBytes piece : pieces) {
      bytes += piece.size();
      if (!zero_copy || piece.size() <= llp::kCopiedPiece) {
        call.copies.emplace_back(piece.begin(), piece.end());
        piece = call.copies.back();
      }
      call.pieces.push_back(piece);
    }
    if (zero_copy) ++calls_;
    if (zero_copy || !waiting_.empty())
      waiting_.push_back(std::move(call));
    else
      hand_on(call);
    return {llp::IoStatus::ok, bytes, 0};
  }
  void hand_on(const Call& call) {
    for (const ConstBytes piece : call.pieces)
      if (!piece.empty()) write(*inner_, piece);
  }

  const StreamEnd inner_;
  size_t from_ = SIZE_MAX;
  std::deque<Call> waiting_;
  uint64_t calls_ = 0;
  uint64_t released_ = 0;
};

/// Two queue pairs; the stream of `a` keeps memory sent without copying in flight until the test
/// releases it.
struct ZeroCopyScene {
  explicit ZeroCopyScene(const mpa::NegotiatedParameters& parameters = {}, size_t from = kFrom) {
    world.device_options.zerocopy_from = from;
    a.emplace(world.add_device(), options());
    b.emplace(world.add_device(), options());
    auto ends = llp::memory_stream_pair(1 << 20, 1500);
    auto sender = std::make_unique<ZeroCopyStream>(std::move(ends.first));
    stream = sender.get();
    join(*a, *b, {std::move(sender), std::move(ends.second)}, parameters);
    REQUIRE_FALSE(write(0, 8));  // b may send from then on
    world.settle();
    REQUIRE(completed().size() == 1);
  }
  static RcOptions options() {
    RcOptions options;
    options.access = kOpen | Access::remote_invalidate;
    return options;
  }
  std::error_code write(size_t offset, size_t length, uint64_t wr_id = 0) {
    return a->post(WrOpcode::rdma_write, offset, length, b->remote(offset), wr_id);
  }
  void release_calls(uint64_t calls) {
    stream->release_calls(calls);
    world.settle();
  }
  std::vector<uint64_t> completed() {
    std::vector<uint64_t> all;
    for (const WorkCompletion& completion : drain(a->send_cq)) {
      CHECK(completion.status == WcStatus::success);
      all.push_back(completion.wr_id);
    }
    return all;
  }
  Device& device_of_a() { return world.devices[0]; }

  World world;
  std::optional<RcParty> a;
  std::optional<RcParty> b;
  ZeroCopyStream* stream = nullptr;  // until the connection ends
};

using Ids = std::vector<uint64_t>;

}  // namespace

TEST_CASE("A zero-copy Send or Write completes when the stream has released it") {
  const bool crc = GENERATE(true, false);
  const WrOpcode opcode = GENERATE(WrOpcode::send, WrOpcode::rdma_write);
  CAPTURE(crc, opcode);
  ZeroCopyScene scene({.crc = crc});
  const auto contents = pattern(kLong, 1);
  scene.a->fill(contents);
  REQUIRE_FALSE(scene.b->post_recv(1, 0, kLong));
  REQUIRE_FALSE(scene.a->post(opcode, 0, kLong, scene.b->remote(), 7));
  scene.world.settle();
  REQUIRE(scene.stream->zero_copy_calls() == 1);
  CHECK(scene.completed().empty());
  CHECK(scene.a->qp.query().posted_sends == 1);
  scene.release_calls(1);
  CHECK(scene.completed() == Ids{7});
  scene.a->fill(pattern(kLong, 2));
  scene.world.settle();
  CHECK(same(scene.b->bytes(0, kLong), contents));
  CHECK(scene.b->qp.state() == QpState::rts);
}

TEST_CASE("A message posted after a zero-copy message leaves, and completes after it") {
  ZeroCopyScene scene;
  REQUIRE_FALSE(scene.write(0, kLong, 1));
  scene.world.settle();
  REQUIRE_FALSE(scene.write(0, 100, 2));
  scene.world.settle();
  REQUIRE_FALSE(scene.write(0, kLong, 3));
  REQUIRE_FALSE(scene.a->qp.post_send({.wr_id = 4,
                                       .flags = SendFlags::signaled,
                                       .opcode = WrOpcode::local_invalidate,
                                       .invalidate_stag = scene.a->mr->rkey()}));
  scene.world.settle();
  CHECK(scene.stream->zero_copy_calls() == 2);
  CHECK(scene.completed().empty());
  scene.release_calls(1);
  CHECK(scene.completed() == Ids{1, 2});
  scene.release_calls(1);
  CHECK(scene.completed() == Ids{3, 4});
}

TEST_CASE("Each message completes when its last call has been released") {
  ZeroCopyScene scene;
  const size_t three_bursts = 60'000;
  // In a burst there is room for 32 FPDUs of 1,500 bytes.
  REQUIRE_FALSE(scene.write(0, three_bursts, 1));
  REQUIRE_FALSE(scene.write(0, kLong, 2));
  scene.world.settle();
  const uint64_t calls = scene.stream->zero_copy_calls();
  REQUIRE(calls >= 2);
  for (uint64_t i = 0; i + 1 < calls; ++i) {
    scene.release_calls(1);
    CHECK(scene.completed().size() <= 1);
  }
  scene.release_calls(1);
  CHECK(scene.completed().back() == 2);
}

TEST_CASE("The response to a Read after a zero-copy Write is taken, and completes after it") {
  ZeroCopyScene scene;
  scene.a->fill(pattern(kLong, 1));
  scene.b->fill(pattern(100, 2), 10'000);
  REQUIRE_FALSE(scene.write(0, kLong, 1));
  REQUIRE_FALSE(scene.a->post(WrOpcode::rdma_read, 20'000, 100, scene.b->remote(10'000), 2));
  scene.world.settle();
  // The bytes have left, but what was told of them is late.
  scene.stream->release_calls(0);
  CHECK(scene.completed().empty());
  scene.release_calls(1);
  CHECK(scene.completed() == Ids{1, 2});
  CHECK(same(scene.a->bytes(20'000, 100), scene.b->bytes(10'000, 100)));
}

TEST_CASE("The send queue is full while what is in it is in flight") {
  ZeroCopyScene scene;
  const uint32_t depth = scene.a->qp.query().capacity.max_send_wr;
  for (uint32_t i = 0; i < depth; ++i) {
    REQUIRE_FALSE(scene.write(0, kLong, i));
    scene.world.settle();
  }
  CHECK(scene.write(0, kLong) == Errc::queue_full);
  scene.release_calls(1);
  CHECK(scene.completed() == Ids{0});
  CHECK_FALSE(scene.write(0, kLong, depth));
  scene.world.settle();
  scene.stream->release_all();
  scene.world.settle();
  CHECK(scene.completed().size() == depth);
}

TEST_CASE("Memory that a peer reads and FPDUs with markers are copied") {
  const bool crc = GENERATE(true, false);
  CAPTURE(crc);
  SECTION("read") {
    ZeroCopyScene scene({.crc = crc, .ord = 4, .ird = 4});
    REQUIRE_FALSE(scene.b->post(WrOpcode::rdma_read, 0, kLong, scene.a->remote()));
    scene.world.settle();
    CHECK(statuses(scene.b->send_cq) == Statuses{WcStatus::success});
    CHECK(scene.stream->zero_copy_calls() == 0);
  }
  SECTION("markers") {
    ZeroCopyScene scene({.crc = crc, .send_markers = true});
    CHECK(scene.device_of_a().counter("rc_zerocopy_refused") == 1);
    scene.a->fill(pattern(kLong, 1));
    REQUIRE_FALSE(scene.write(0, kLong, 1));
    scene.world.settle();
    CHECK(scene.completed() == Ids{1});
    CHECK(scene.stream->zero_copy_calls() == 0);
    CHECK(scene.b->memory == scene.a->memory);
  }
}

TEST_CASE("Everything is copied where the device does not ask for it") {
  ZeroCopyScene scene({}, 0);
  REQUIRE_FALSE(scene.write(0, kLong, 1));
  scene.world.settle();
  CHECK(scene.stream->zero_copy_calls() == 0);
  CHECK(scene.completed() == Ids{1});
  CHECK(scene.device_of_a().counter("rc_zerocopy_refused") == 0);
}

TEST_CASE("A connection over a stream that always copies is counted where the device asks for it") {
  World world;
  world.device_options.zerocopy_from = kFrom;
  RcParty a(world.add_device());
  RcParty b(world.add_device(), {.access = kOpen});
  join(a, b, llp::memory_stream_pair(1 << 20, 1500));
  CHECK(world.devices[0].counter("rc_zerocopy_refused") == 1);
  REQUIRE_FALSE(a.post(WrOpcode::rdma_write, 0, kLong, b.remote()));
  world.settle();
  CHECK(statuses(a.send_cq) == Statuses{WcStatus::success});
}

TEST_CASE(
    "A stream that lends is asked to free what it does not need for as long as it keeps some") {
  ZeroCopyScene scene;
  REQUIRE_FALSE(scene.write(0, kLong, 1));
  scene.world.settle();
  scene.release_calls(1);
  for (int i = 0; i < 10; ++i) scene.world.advance(1500ms);
  CHECK(scene.stream->trims == 3);
}

// --- Ends.

TEST_CASE(
    "A connection that ends by hand while memory is in flight is reset and its work flushed") {
  ZeroCopyScene scene;
  REQUIRE_FALSE(scene.write(0, kLong, 1));
  scene.world.settle();
  REQUIRE(scene.stream->zero_copy_calls() == 1);
  SECTION("moved to error") {
    scene.a->qp.modify(QpState::error);
    CHECK(statuses(scene.a->send_cq) == Statuses{WcStatus::wr_flush_error});
  }
  SECTION("reset") { scene.a->qp.modify(QpState::reset); }
  SECTION("destroyed") { scene.a.reset(); }
  scene.world.settle();
  CHECK(scene.b->qp.state() == QpState::error);
  CHECK(scene.world.devices[1].counter("rc_resets") == 1);
}

TEST_CASE("A connection whose peer breaks the rules while memory is in flight is reset") {
  ZeroCopyScene scene;
  REQUIRE_FALSE(scene.write(0, kLong, 1));
  scene.world.settle();
  // Memory that it may not write: the answer would be a Terminate.
  REQUIRE_FALSE(scene.b->post(WrOpcode::rdma_write, 0, 100, {0x12345600, 0}));
  scene.world.settle();
  CHECK(scene.a->qp.state() == QpState::error);
  CHECK(statuses(scene.a->send_cq) == Statuses{WcStatus::wr_flush_error});
  CHECK(scene.device_of_a().counter("rc_terminates_sent") == 0);
  CHECK(scene.world.devices[1].counter("rc_terminates_received") == 0);
  CHECK(scene.world.devices[1].counter("rc_resets") == 1);
}

TEST_CASE("A request that fails waits for what is in flight before the connection ends with it") {
  ZeroCopyScene scene;
  REQUIRE_FALSE(scene.write(0, kLong, 1));
  scene.world.settle();
  const Sge unknown{scene.a->memory.data(), kLong, 0x12345600};
  REQUIRE_FALSE(
      scene.a->qp.post_send({.wr_id = 2, .sges = {&unknown, 1}, .flags = SendFlags::signaled}));
  scene.world.settle();
  CHECK(scene.a->qp.state() == QpState::rts);
  scene.release_calls(1);
  CHECK(statuses(scene.a->send_cq) ==
        Statuses{WcStatus::success, WcStatus::local_protection_error});
  CHECK(scene.device_of_a().counter("rc_terminates_sent") == 1);
  CHECK(scene.world.devices[1].counter("rc_terminates_received") == 1);
}

TEST_CASE("A queue pair in sqd has drained when nothing is in flight any more") {
  ZeroCopyScene scene;
  EventQueue events(scene.device_of_a());
  REQUIRE_FALSE(scene.write(0, kLong, 1));
  scene.world.settle();
  scene.a->qp.modify(QpState::sqd);
  scene.world.settle();
  CHECK_FALSE(events.get_event(Duration::zero()));
  scene.release_calls(1);
  const auto drained = events.get_event(Duration::zero());
  REQUIRE(drained);
  CHECK(drained->type == AsyncEventType::sq_drained);
}

}  // namespace diwarp::test
