// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/counters.h"
#include "base/mpsc_list.h"
#include "base/spin_flag.h"
#include "base/spsc_ring.h"
#include "base/validity_pool.h"
#include "support/catch.h"

using namespace diwarp;

TEST_CASE("a spin flag admits one holder at a time") {
  SpinFlag flag;
  CHECK(flag.try_lock());
  CHECK_FALSE(flag.try_lock());
  flag.unlock();
  CHECK(flag.try_lock());
  flag.unlock();
}

TEST_CASE("the value that a spin flag guards is not torn by three threads") {
  constexpr int kRounds = 20000;
  SpinFlag flag;
  int counter = 0;  // not atomic on purpose
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const std::lock_guard guard(flag);
        ++counter;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(counter == 3 * kRounds);
}

TEST_CASE("a single-producer ring holds exactly its capacity") {
  SpscRing<int> ring(3);
  CHECK(ring.front() == nullptr);
  for (int i = 0; i < 3; ++i) CHECK(ring.try_push(i));
  CHECK_FALSE(ring.try_push(3));
  CHECK(ring.size() == 3);
  CHECK(*ring.front() == 0);
  ring.pop();
  CHECK(ring.try_push(3));
  CHECK_FALSE(ring.try_push(4));
  for (int expected = 1; expected <= 3; ++expected) {
    REQUIRE(ring.front() != nullptr);
    CHECK(*ring.front() == expected);
    ring.pop();
  }
  CHECK(ring.front() == nullptr);
  CHECK(ring.size() == 0);
}

TEST_CASE("a single-producer ring releases what was popped") {
  const auto shared = std::make_shared<int>(1);
  SpscRing<std::shared_ptr<int>> ring(2);
  CHECK(ring.try_push(shared));
  ring.pop();
  CHECK(shared.use_count() == 1);
}

TEST_CASE("a single-producer ring moves out what is taken from it") {
  const auto shared = std::make_shared<int>(1);
  SpscRing<std::shared_ptr<int>> ring(1);
  std::shared_ptr<int> taken;
  CHECK_FALSE(ring.try_pop(taken));
  CHECK(ring.try_push(shared));
  CHECK(ring.try_pop(taken));
  CHECK(taken == shared);
  CHECK(shared.use_count() == 2);
  CHECK(ring.try_push(shared));  // its place was free again
  CHECK(ring.size() == 1);
}

TEST_CASE("a single-producer ring has an element once the place for it is published") {
  SpscRing<int> ring(1);
  int* const place = ring.free_place();
  REQUIRE(place != nullptr);
  *place = 7;
  CHECK(ring.front() == nullptr);
  CHECK(ring.publish() == 0);
  REQUIRE(ring.front() != nullptr);
  CHECK(*ring.front() == 7);
  CHECK(ring.free_place() == nullptr);
  ring.pop();
  CHECK(ring.free_place() != nullptr);
  CHECK(ring.publish() == 1);
}

TEST_CASE("a single-producer ring gives as many as there are, and as there is room for") {
  SpscRing<int> ring(4);
  std::array<int, 3> taken{};
  CHECK(ring.pop(std::span(taken)) == 0);
  for (int i = 1; i <= 4; ++i) CHECK(ring.try_push(i));
  CHECK(ring.pop(std::span(taken)) == 3);
  CHECK(taken == std::array{1, 2, 3});
  CHECK(ring.try_push(5));  // it goes round
  CHECK(ring.pop(std::span(taken)) == 2);
  CHECK(taken == std::array{4, 5, 3});
  CHECK(ring.size() == 0);
}

TEST_CASE("a single-producer ring hands everything over in order and whole") {
  struct Entry {
    uint64_t number = 0;
    uint64_t inverse = 0;
  };
  constexpr uint64_t kCount = 50000;
  SpscRing<Entry> ring(8);
  std::thread producer([&] {
    for (uint64_t i = 0; i < kCount; ++i) {
      while (!ring.try_push({i, ~i})) std::this_thread::yield();
    }
  });
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    Entry* entry = ring.front();
    while (entry == nullptr) {
      std::this_thread::yield();
      entry = ring.front();
    }
    if (entry->number != i || entry->inverse != ~i) ++wrong;
    ring.pop();
  }
  producer.join();
  CHECK(wrong == 0);
  CHECK(ring.front() == nullptr);
}

namespace {

struct Message : MpscNode {
  int sender = 0;
  int number = 0;
};

}  // namespace

TEST_CASE("the first push into an empty list says so, and order is kept") {
  std::array<Message, 3> messages;
  for (int i = 0; i < 3; ++i) messages[static_cast<size_t>(i)].number = i;
  MpscList list;
  CHECK(list.empty());
  CHECK(list.pop_all() == nullptr);
  CHECK(list.push(messages[0]));
  CHECK_FALSE(list.push(messages[1]));
  CHECK_FALSE(list.push(messages[2]));
  MpscNode* node = list.pop_all();
  for (Message& expected : messages) {
    REQUIRE(node == &expected);
    node = node->next.load();
  }
  CHECK(node == nullptr);
  CHECK(list.empty());
  CHECK(list.push(messages[1]));
}

TEST_CASE("a node may be pushed again while a list is drained") {
  std::array<Message, 2> messages;
  MpscList list;
  for (Message& message : messages) list.push(message);
  CHECK(list.drain([&](MpscNode& node) { list.push(node); }) == 2);
  CHECK(list.drain([](MpscNode&) {}) == 2);
  CHECK(list.empty());
}

TEST_CASE("elements that several threads push into a list arrive once, in the order of each") {
  constexpr int kSenders = 3;
  constexpr int kEach = 5000;
  std::array<std::deque<Message>, kSenders> messages;
  for (auto& own : messages) own.resize(kEach);
  MpscList list;
  std::vector<std::thread> threads;
  for (int sender = 0; sender < kSenders; ++sender) {
    threads.emplace_back([&, sender] {
      for (int number = 0; number < kEach; ++number) {
        Message& message = messages[static_cast<size_t>(sender)][static_cast<size_t>(number)];
        message.sender = sender;
        message.number = number;
        list.push(message);
      }
    });
  }
  std::array<int, kSenders> expected{};
  int wrong = 0;
  for (size_t received = 0; received < size_t{kSenders} * kEach;) {
    received += list.drain([&](MpscNode& node) {
      const auto& message = static_cast<Message&>(node);
      if (message.number != expected[static_cast<size_t>(message.sender)]++) ++wrong;
    });
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(list.empty());
}

TEST_CASE("shared additions to a counter are not lost") {
  Counters counters;
  const auto count = [&] {
    for (int i = 0; i < 20000; ++i) counters.add_shared(Counter::rx_datagrams);
  };
  std::thread other(count);
  count();
  other.join();
  CHECK(counters.get(Counter::rx_datagrams) == 40000);
}

TEST_CASE("validity maps are dropped by other threads while their pool lends new ones") {
  constexpr size_t kMaps = 4;
  constexpr int kCount = 20000;
  auto pool = ValidityPool::create(kMaps, 8);
  SpscRing<ValidityMap> handed(8);
  std::atomic<int> wrong{0};
  const auto drop = [&] {
    for (int taken = 0; taken < kCount;) {
      ValidityMap* front = handed.front();
      if (front == nullptr) {
        std::this_thread::yield();
        continue;
      }
      const ValidityMap copy = *front;
      handed.pop();
      ++taken;
      if (copy.range_count() != 2 || copy.valid_bytes() != 20 || !copy.contains(20, 10)) ++wrong;
    }
  };
  std::thread dropper(drop);
  for (int made = 0; made < kCount;) {
    ValidityBuilder builder;
    builder.insert(0, 10, *pool);
    if (builder.insert(20, 30, *pool) == InsertResult::full) {
      std::this_thread::yield();
      continue;
    }
    ValidityMap map = builder.take(100);
    while (!handed.try_push(map)) std::this_thread::yield();
    ++made;
  }
  pool.reset();  // the maps that are still there keep it
  dropper.join();
  CHECK(wrong == 0);
}
