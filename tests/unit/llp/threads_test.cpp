// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "datagrams.h"
#include "llp/memory/memory_network.h"
#include "llp/poller.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

using namespace std::chrono_literals;
using test::bytes_of;
using test::text_pattern;

/// Says when a test has waited long enough to give up.
class Deadline {
 public:
  bool passed() const { return std::chrono::steady_clock::now() > end_; }

 private:
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + 60s;
};

TEST_CASE("a wake from another thread ends a wait for ever") {
  Poller poller;
  std::array<PollEvent, 1> events;
  for (int round = 0; round < 100; ++round) {
    std::thread waker([&] { poller.wake(); });
    CHECK(poller.wait(events, -1ns) == 0);
    waker.join();
  }
}

TEST_CASE("datagrams that several threads send over memory are received or counted as overflowed") {
  constexpr size_t kSenders = 3;
  constexpr size_t kEach = 5000;
  MemoryOptions options;
  options.queue_datagrams = 64;
  const auto network = MemoryNetwork::create(options);
  const Address to = Address::parse("10.0.0.1:1");
  const auto receiver = network->open(to);
  Poller poller;
  receiver->on_ready([&] { poller.wake(); });
  std::atomic<size_t> running = kSenders;
  std::vector<std::thread> senders;
  for (size_t i = 0; i < kSenders; ++i) {
    senders.emplace_back([&] {
      const auto link = network->open(to.with_port(0));
      for (size_t k = 0; k < kEach; ++k) test::send_one(*link, to, text_pattern(100, k));
      --running;
      poller.wake();
    });
  }
  ReceiveBatch batch(16, 2048, 64);
  std::array<PollEvent, 1> events;
  size_t received = 0;
  for (bool all = false; !all;) {
    poller.wait(events, 1s);
    all = running == 0;
    while (const size_t got = receiver->receive(batch)) received += got;
  }
  for (std::thread& sender : senders) sender.join();
  CHECK(received + receiver->overflowed() == kSenders * kEach);
  CHECK(received > 0);
}

TEST_CASE("no callback runs after the memory link it belonged to is gone") {
  const auto network = MemoryNetwork::create();
  const Address to = Address::parse("10.0.0.1:1");
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    const auto link = network->open(to.with_port(0));
    while (!stop) test::send_one(*link, to, "x");
  });
  for (int round = 0; round < 200; ++round) {
    auto flag = std::make_unique<std::atomic<int>>(0);
    auto link = network->open(to);
    link->on_ready([&flag = *flag] { ++flag; });
    const Deadline deadline;
    while (*flag == 0 && !deadline.passed()) std::this_thread::yield();
    CHECK(*flag > 0);
    link.reset();
  }  // the flag is gone: the sanitizers see a late callback
  stop = true;
  sender.join();
}

TEST_CASE("a memory stream carries bytes between two threads, woken by its callbacks") {
  auto [a, b] = memory_stream_pair(1000);
  const std::string text = text_pattern(size_t{1} << 20);
  const Deadline deadline;
  std::thread writer([&text, &deadline, stream = std::move(a)]() mutable {
    Poller poller;
    std::array<PollEvent, 1> events;
    stream->on_ready([&] { poller.wake(); });
    for (size_t sent = 0; sent < text.size() && !deadline.passed();) {
      const ConstBytes piece = bytes_of(std::string_view(text).substr(sent));
      const IoResult result = stream->send({&piece, 1});
      sent += result.bytes;
      if (result.status == IoStatus::would_block) poller.wait(events, 1s);
    }
    stream.reset();
  });
  Poller poller;
  std::array<PollEvent, 1> events;
  b->on_ready([&] { poller.wake(); });
  std::string received;
  std::array<std::byte, 700> buffer;
  IoResult result;
  while (result.status != IoStatus::closed && !deadline.passed()) {
    result = b->receive(buffer);
    REQUIRE(result.status != IoStatus::failed);
    received += test::text_of(Bytes(buffer).first(result.bytes));
    if (result.status == IoStatus::would_block) poller.wait(events, 1s);
  }
  writer.join();
  CHECK(result.status == IoStatus::closed);
  CHECK(received == text);
  b->on_ready({});
}

}  // namespace
}  // namespace diwarp::llp
