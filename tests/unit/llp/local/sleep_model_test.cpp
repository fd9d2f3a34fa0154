// SPDX-License-Identifier: Apache-2.0
// A model of how a consumer of a ring falls asleep and is woken, over all interleavings of its two
// threads, each with a store buffer as x86 processors have them (TSO). It takes the steps that
// RingConsumer::sleep() and RingProducer::must_wake() take.
#include <array>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "support/catch.h"

namespace diwarp::llp {
namespace {

constexpr int kEntries = 3;  // that the producer puts into the ring, one in each burst

/// Which of the two fences stand.
struct Fences {
  bool producer = true;
  bool consumer = true;
};

enum Variable : uint8_t { kPut, kAsleep, kVariables };

struct Store {
  Variable variable;
  int value;
  auto operator<=>(const Store&) const = default;
};

/// One of the two threads: where it is, what it has read, and stores that nobody else sees yet.
struct Thread {
  int line = 0;
  int number = 0;  // producer: entries put; consumer: entries taken
  std::vector<Store> buffer;
  auto operator<=>(const Thread&) const = default;
};

struct State {
  std::array<int, kVariables> memory{};
  int wakes = 0;  // packets in the socket
  Thread producer;
  Thread consumer;
  auto operator<=>(const State&) const = default;

  int load(const Thread& thread, Variable variable) const {
    for (auto store = thread.buffer.rbegin(); store != thread.buffer.rend(); ++store)
      if (store->variable == variable) return store->value;
    return memory[variable];
  }
};

void drain(State& state, Thread& thread) {
  for (const Store& store : thread.buffer) state.memory[store.variable] = store.value;
  thread.buffer.clear();
}

enum class Step : uint8_t { done, waits, ended };

/// put(): store; must_wake(): fence, load, exchange; then the packet.
Step step_producer(State& state, const Fences& fences) {
  Thread& self = state.producer;
  switch (self.line) {
    case 0:
      if (self.number == kEntries) return Step::ended;
      self.buffer.push_back({kPut, ++self.number});
      break;
    case 1:
      if (fences.producer) drain(state, self);
      break;
    case 2:
      if (state.load(self, kAsleep) == 0) {
        self.line = 0;
        return Step::done;
      }
      break;
    case 3:  // an exchange empties the buffer by itself
      drain(state, self);
      if (state.memory[kAsleep] != 0) ++state.wakes;
      state.memory[kAsleep] = 0;
      self.line = 0;
      return Step::done;
  }
  ++self.line;
  return Step::done;
}

/// take() until it is empty; sleep(): store, fence, load; then a wait for a packet.
Step step_consumer(State& state, const Fences& fences) {
  Thread& self = state.consumer;
  const bool something = state.load(self, kPut) > self.number;
  switch (self.line) {
    case 0:
      if (self.number == kEntries) return Step::ended;
      if (something) {
        ++self.number;
        return Step::done;
      }
      break;
    case 1:
      self.buffer.push_back({kAsleep, 1});
      break;
    case 2:
      if (fences.consumer) drain(state, self);
      break;
    case 3:
      if (something) {
        self.buffer.push_back({kAsleep, 0});
        self.line = 0;
        return Step::done;
      }
      break;
    case 4:
      if (state.wakes == 0) return Step::waits;
      --state.wakes;
      self.line = 0;
      return Step::done;
  }
  ++self.line;
  return Step::done;
}

/// All states that can be reached; true if in one of them the consumer sleeps for ever though
/// something waits.
class Exploration {
 public:
  explicit Exploration(Fences fences) : fences_(fences) { explore({}); }

  bool sleeps_for_ever() const { return sleeps_for_ever_; }
  bool ends() const { return ends_; }
  size_t states() const { return seen_.size(); }

 private:
  void explore(const State& first) {
    std::vector<State> open = {first};
    while (!open.empty()) {
      const State state = open.back();
      open.pop_back();
      if (!seen_.insert(state).second) continue;
      State next = state;
      const Step produced = step_producer(next, fences_);
      if (produced == Step::done) open.push_back(next);
      next = state;
      const Step consumed = step_consumer(next, fences_);
      if (consumed == Step::done) open.push_back(next);
      flush(state, &State::producer, open);
      flush(state, &State::consumer, open);
      const bool stuck = produced == Step::ended && state.producer.buffer.empty() &&
                         consumed == Step::waits && state.consumer.buffer.empty();
      if (stuck) sleeps_for_ever_ = true;
      if (produced == Step::ended && consumed == Step::ended) ends_ = true;
    }
  }

  static void flush(const State& state, Thread State::*which, std::vector<State>& open) {
    if ((state.*which).buffer.empty()) return;
    State next = state;
    auto& buffer = (next.*which).buffer;
    next.memory[buffer.front().variable] = buffer.front().value;
    buffer.erase(buffer.begin());
    open.push_back(next);
  }

  const Fences fences_;
  std::set<State> seen_;
  bool sleeps_for_ever_ = false;
  bool ends_ = false;
};

TEST_CASE("no interleaving leaves a consumer asleep while something waits") {
  const Exploration exploration({});
  CHECK_FALSE(exploration.sleeps_for_ever());
  CHECK(exploration.ends());
  CHECK(exploration.states() > 100);
}

TEST_CASE("without either fence some interleaving does") {
  CHECK(Exploration({.producer = false}).sleeps_for_ever());
  CHECK(Exploration({.consumer = false}).sleeps_for_ever());
}

}  // namespace
}  // namespace diwarp::llp
