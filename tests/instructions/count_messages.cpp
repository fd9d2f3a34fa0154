// SPDX-License-Identifier: Apache-2.0
// Sends messages between two devices over loopback for callgrind to count instructions in.
// Usage: count_messages ud|rd|rc MESSAGES DEPTH [BYTES]
//
// Both devices make progress in this one thread, by turns, so that the same instructions run each
// time. All that one end does is done within one function, by whose name callgrind is told what to
// count: sender_turn() or receiver_turn().
#include <diwarp/verbs.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
constexpr uint32_t max_depth = 256;
constexpr int idle_turns = 10'000'000;  // so many in a row end the program

[[noreturn]] void fail(const char* problem) {
  std::fprintf(stderr, "count_messages: %s\n", problem);
  std::exit(1);
}

struct End {
  explicit End(diwarp::QpType type)
      : device(diwarp::Device::open("127.0.0.1", {.progress = diwarp::Progress::manual})),
        pd(device),
        cq(device, 2 * max_depth),
        qp(pd, {.type = type,
                .send_cq = cq,
                .recv_cq = cq,
                .capacity = {.max_send_wr = max_depth, .max_recv_wr = max_depth}}),
        memory(pd, bytes.data(), bytes.size()) {}

  // Takes the successful completions that there are; returns how many.
  size_t poll() {
    const size_t count = cq.poll(completions);
    for (size_t i = 0; i < count; ++i)
      if (completions[i].status != diwarp::WcStatus::success) fail("a message was not delivered");
    return count;
  }

  std::array<std::byte, 4096> bytes{};
  std::array<diwarp::WorkCompletion, 64> completions{};
  diwarp::Device device;
  diwarp::ProtectionDomain pd;
  diwarp::CompletionQueue cq;
  diwarp::QueuePair qp;
  diwarp::MemoryRegion memory;
};

struct Exchange {
  End& sender;
  End& receiver;
  diwarp::Address destination;
  uint64_t messages;
  uint32_t depth;
  uint32_t length;
  uint64_t posted = 0;
  uint64_t sent = 0;
  uint64_t received = 0;
};

void post_receives(End& end, size_t count, uint32_t length) {
  for (size_t i = 0; i < count; ++i)
    if (end.qp.post_recv({.sges = end.memory.sge(0, length)})) fail("a receive was refused");
}

}  // namespace

// The names that callgrind is told stand in the table of symbols, and no copy of these functions
// has another.
extern "C" [[gnu::noipa]] void sender_turn(Exchange& exchange) {
  End& end = exchange.sender;
  // No more in flight than there are receives, so that nothing is lost.
  const uint64_t done = std::min(exchange.sent, exchange.received);
  if (exchange.posted == done) {
    const uint64_t burst = std::min<uint64_t>(exchange.depth, exchange.messages - exchange.posted);
    for (uint64_t i = 0; i < burst; ++i)
      if (end.qp.post_send(
              {.sges = end.memory.sge(0, exchange.length), .destination = exchange.destination}))
        fail("a send was refused");
    exchange.posted += burst;
  }
  end.device.progress();
  exchange.sent += end.poll();
}

extern "C" [[gnu::noipa]] void receiver_turn(Exchange& exchange) {
  End& end = exchange.receiver;
  end.device.progress();
  const size_t count = end.poll();
  exchange.received += count;
  post_receives(end, count, exchange.length);
}

namespace {

void connect(End& sender, End& receiver) {
  diwarp::Listener listener(receiver.device, 0);
  std::jthread server([&] {
    auto request = listener.get_request(10s);
    if (!request) fail("no connection came");
    request->accept(receiver.qp);
  });
  sender.qp.connect(listener.address());
}

void run(Exchange& exchange) {
  post_receives(exchange.receiver, exchange.depth, exchange.length);
  int idle = 0;
  while (exchange.sent < exchange.messages || exchange.received < exchange.messages) {
    const uint64_t before = exchange.sent + exchange.received;
    sender_turn(exchange);
    receiver_turn(exchange);
    idle = exchange.sent + exchange.received == before ? idle + 1 : 0;
    if (idle == idle_turns) fail("the messages stopped: is the interface lo up?");
  }
}

diwarp::QpType type_named(std::string_view name) {
  if (name == "ud") return diwarp::QpType::ud;
  if (name == "rd") return diwarp::QpType::rd;
  if (name == "rc") return diwarp::QpType::rc;
  fail("the transport is ud, rd or rc");
}

uint64_t number(const char* text, uint64_t least, uint64_t most) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != 0 || value < least || value > most) fail("a number is out of range");
  return value;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4 || count > 5) fail("usage: count_messages ud|rd|rc MESSAGES DEPTH [BYTES]");
  const diwarp::QpType type = type_named(words[1]);
  End sender(type), receiver(type);
  if (type == diwarp::QpType::rc) connect(sender, receiver);
  Exchange exchange{
      .sender = sender,
      .receiver = receiver,
      .destination = type == diwarp::QpType::rc ? diwarp::Address{} : receiver.qp.address(),
      .messages = number(words[2], 1, 1'000'000'000),
      .depth = static_cast<uint32_t>(number(words[3], 1, max_depth)),
      .length = count == 5 ? static_cast<uint32_t>(number(words[4], 0, 4096)) : 64};
  run(exchange);
}
