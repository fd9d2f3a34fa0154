// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Threads that all do the same on shared objects: post messages with running numbers, poll both
/// completion queues, and use received buffers again.
class Posters {
 public:
  Posters(Party& source, Party& target, uint64_t messages)
      : source_(source), target_(target), seen_(messages) {
    for (uint64_t slot = 0; slot < kSlots; ++slot)
      REQUIRE_FALSE(target.post_recv(slot, slot * 8, 8));
  }

  /// True if everything was delivered in time.
  bool run(size_t threads) {
    std::vector<std::thread> posters;
    for (size_t i = 0; i < threads; ++i) posters.emplace_back([this] { work(); });
    for (std::thread& member : posters) member.join();
    return received_.load() == seen_.size() && failures_.load() == 0;
  }
  bool each_once() const {
    return std::all_of(seen_.begin(), seen_.end(), [](const auto& count) { return count == 1; });
  }

 private:
  static constexpr uint64_t kSlots = 256;
  static constexpr uint64_t kWindow = 100;  // fewer than receives, and than any buffer holds

  void work() {
    const Time deadline = std::chrono::steady_clock::now() + 2 * kPatience;
    while (received_.load() < seen_.size() && std::chrono::steady_clock::now() < deadline) {
      post();
      poll_receives();
      std::array<WorkCompletion, 16> batch;
      const size_t count = source_.send_cq.poll(batch);
      for (size_t i = 0; i < count; ++i)
        if (batch[i].status != WcStatus::success) ++failures_;
    }
  }

  void post() {
    uint64_t number = next_.load();
    if (number >= seen_.size() || number >= received_.load() + kWindow) return;
    if (!next_.compare_exchange_strong(number, number + 1)) return;
    const Sge sge{&number, sizeof number, 0};
    // A full queue empties as soon as someone polls: at the target as well, where that has to take
    // part before anything can be sent.
    while (source_.qp.post_send({.sges = {&sge, 1},
                                 .flags = SendFlags::inline_data | SendFlags::signaled,
                                 .destination = target_.address()}) == Errc::queue_full) {
      std::array<WorkCompletion, 16> batch;
      source_.send_cq.poll(batch);
      poll_receives();
    }
  }

  void poll_receives() {
    std::array<WorkCompletion, 8> batch;
    const size_t count = target_.recv_cq.poll(batch);
    for (size_t i = 0; i < count; ++i) {
      uint64_t number = 0;
      std::memcpy(&number, &target_.memory[batch[i].wr_id * 8], sizeof number);
      if (batch[i].byte_count != 8 || number >= seen_.size()) {
        ++failures_;
        continue;
      }
      ++seen_[number];
      if (target_.post_recv(batch[i].wr_id, batch[i].wr_id * 8, 8)) ++failures_;
      ++received_;
    }
  }

  Party& source_;
  Party& target_;
  std::vector<std::atomic<int>> seen_;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> received_{0};
  std::atomic<int> failures_{0};
};

}  // namespace

TEST_CASE("four threads post and poll on the same queue pairs, and all arrives once", "[window]") {
  const auto progress = GENERATE(Progress::thread, Progress::manual);
  const bool same_device = GENERATE(true, false);
  CAPTURE(static_cast<int>(progress), same_device);
  Device one = Device::open("127.0.0.1", {.progress = progress});
  Device two = Device::open("127.0.0.1", {.progress = progress});
  Party source(one, {.send_entries = 8, .capacity = {.max_send_wr = 16}});
  Party target(same_device ? one : two, {.receive_entries = 8, .capacity = {.max_recv_wr = 256}});
  Posters posters(source, target, 4000);
  CHECK(posters.run(4));
  CHECK(posters.each_once());
  CHECK(drops(one) + drops(two) == 0);
}

TEST_CASE("regions come and go while others work", "[window]") {
  Device device = Device::open("127.0.0.1");
  Party source(device, {.capacity = {.max_send_wr = 16}});
  Party target(device, {.capacity = {.max_recv_wr = 256}});
  Posters posters(source, target, 2000);
  std::atomic<bool> stop{false};
  std::thread registrar([&] {
    std::vector<std::byte> memory(4096);
    while (!stop.load()) {
      std::vector<MemoryRegion> regions;
      for (int i = 0; i < 100; ++i) regions.emplace_back(target.pd, std::span(memory));
    }
  });
  CHECK(posters.run(2));
  stop = true;
  registrar.join();
  CHECK(posters.each_once());
  CHECK(device.query().memory_regions == 2);
}

TEST_CASE("queue pairs come and go while others work") {
  Device device = Device::open("127.0.0.1");
  Party source(device, {.capacity = {.max_send_wr = 16}});
  Party target(device, {.capacity = {.max_recv_wr = 256}});
  Posters posters(source, target, 2000);
  std::atomic<bool> stop{false};
  std::thread founder([&] {
    while (!stop.load()) {
      Party visitor(device);
      static_cast<void>(visitor.post_recv(0, 0, 100));
      static_cast<void>(visitor.send(visitor.address(), 500, 100));
    }
  });
  CHECK(posters.run(2));
  stop = true;
  founder.join();
  CHECK(posters.each_once());
  CHECK(device.query().queue_pairs == 2);
}

TEST_CASE("a queue pair that is moved through its states under fire reports each request once") {
  Device device = Device::open("127.0.0.1");
  PartyOptions options{.send_entries = 4096, .receive_entries = 4096};
  Party party(device, options);
  Party peer(device, options);
  peer.post_receives(100, 8);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> next{1};
  std::atomic<bool> wrong{false};
  std::vector<std::atomic<int>> posted(1 << 18);
  std::shared_mutex no_reset;
  std::vector<std::thread> posters;
  for (int i = 0; i < 2; ++i) {
    posters.emplace_back([&] {
      while (!stop.load()) {
        const uint64_t id = next++;
        if (id >= posted.size()) return;
        const bool receive = id % 2 == 0;
        const std::shared_lock lock(no_reset);
        const std::error_code error =
            receive ? party.post_recv(id, 0, 8) : party.send(peer.address(), 0, 8, id);
        if (!error) ++posted[id];
        if (error && error != Errc::invalid_state && error != Errc::queue_full) wrong = true;
        if (error) std::this_thread::yield();
      }
    });
  }
  std::vector<int> completed(posted.size());
  const auto collect = [&](CompletionQueue& cq) {
    for (const WorkCompletion& completion : drain(cq)) ++completed[completion.wr_id];
  };
  for (int life = 0; life < 200; ++life) {
    std::this_thread::sleep_for(50us);
    party.qp.modify(QpState::error);
    std::this_thread::sleep_for(50us);
    {
      // The RNIC thread flushes what is posted in error, but what a reset finds is dropped.
      const std::unique_lock lock(no_reset);
      CHECK(eventually([&] {
        collect(party.send_cq);
        collect(party.recv_cq);
        const QueuePairAttributes found = party.qp.query();
        return found.posted_sends + found.posted_receives == 0;
      }));
      party.qp.modify(QpState::reset);
    }
    party.qp.modify(QpState::init);
    party.qp.modify(QpState::rts);
  }
  stop = true;
  for (std::thread& poster : posters) poster.join();
  party.qp.modify(QpState::error);
  collect(party.send_cq);
  collect(party.recv_cq);
  CHECK_FALSE(wrong);
  size_t differences = 0;
  for (size_t id = 0; id < posted.size(); ++id)
    if (posted[id].load() != completed[id]) ++differences;
  CHECK(differences == 0);
}

TEST_CASE("posted requests are never more than the queue holds, whichever thread posts meanwhile") {
  Device device = Device::open("127.0.0.1");
  Party party(device);
  Party peer(device);
  std::atomic<bool> stop{false};
  std::thread poster([&] {
    while (!stop.load())
      if (party.send(peer.address(), 0, 0, 0, SendFlags::none)) std::this_thread::yield();
  });
  uint32_t most = 0;
  for (int i = 0; i < 20000; ++i) most = std::max(most, party.qp.query().posted_sends);
  stop = true;
  poster.join();
  CHECK(most <= 128);
}
