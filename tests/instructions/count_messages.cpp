// SPDX-License-Identifier: Apache-2.0
// Exchanges messages between two devices over loopback for callgrind to count instructions in.
// Usage: count_messages OPERATION MESSAGES DEPTH [BYTES]
//
// Both devices make progress in this one thread, by turns, so that the same instructions run each
// time. All that one end does for messages is done within one function, by whose name callgrind is
// told what to count: sender_turn() or receiver_turn(), and empty_poll() for a poll that finds
// nothing. With `rc-answer` the two ends are a ping-pong, and callgrind is told to count from the
// recv() that brings a message to the send() of the answer; MESSAGES are the messages there and
// back.
#include <diwarp/verbs.h>
#include <dlfcn.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT static_cast<void>(0)
#endif

namespace {

using namespace std::chrono_literals;
constexpr uint32_t max_depth = 256;
constexpr int idle_turns = 10'000'000;  // so many in a row end the program
// What comes before that is counted: polls, then messages, then polls. The queue pairs are then
// asked for input in each step, send from sockets connected to their peers, and receive without
// coalescing, as where programs poll all the time and messages come one by one.
constexpr int first_polls = 1024;
constexpr uint64_t first_messages = 1200;

[[noreturn]] void fail(const char* problem) {
  std::fprintf(stderr, "count_messages: %s\n", problem);
  std::exit(1);
}

struct End {
  explicit End(diwarp::QpType type)
      : device(diwarp::Device::open(
            "127.0.0.1", {.progress = diwarp::Progress::manual, .local = diwarp::LocalPath::off})),
        pd(device),
        cq(device, 2 * max_depth),
        qp(pd, {.type = type,
                .send_cq = cq,
                .recv_cq = cq,
                .capacity = {.max_send_wr = max_depth, .max_recv_wr = max_depth}}),
        memory(pd, bytes.data(), bytes.size(), access) {}

  // Takes the successful completions that there are; returns how many.
  size_t poll() {
    const size_t count = cq.poll(completions);
    for (size_t i = 0; i < count; ++i)
      if (completions[i].status != diwarp::WcStatus::success)
        fail(diwarp::to_string(completions[i].status).data());
    return count;
  }
  void post_receive(uint32_t length) {
    if (qp.post_recv({.sges = memory.sge(0, length)})) fail("a receive was refused");
  }

  static constexpr diwarp::Access access =
      diwarp::Access::local_write | diwarp::Access::remote_write;
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
  bool writes;                  // Write-Records instead of Sends
  diwarp::RemoteMemory target;  // of these
  uint64_t messages = 0;
  uint32_t depth = 1;
  uint32_t length = 0;
  uint64_t posted = 0;
  uint64_t sent = 0;
  uint64_t received = 0;
};

std::error_code post(Exchange& exchange) {
  End& end = exchange.sender;
  if (exchange.writes)
    return end.qp.post_write_record({.sges = end.memory.sge(0, exchange.length),
                                     .destination = exchange.destination,
                                     .remote = exchange.target});
  return end.qp.post_send(
      {.sges = end.memory.sge(0, exchange.length), .destination = exchange.destination});
}

bool answering = false;  // a message was received, and its answer is not sent yet

}  // namespace

// --- What callgrind is told to count within. The names stand in the table of symbols, and no copy
// of these functions has another.

// Posts, where nothing is in flight, and else polls once.
extern "C" [[gnu::noipa]] void sender_turn(Exchange& exchange) {
  // No more in flight than there are receives, so that nothing is lost.
  const uint64_t done = std::min(exchange.sent, exchange.received);
  if (exchange.posted != done) {
    exchange.sent += exchange.sender.poll();
    return;
  }
  const uint64_t burst = std::min<uint64_t>(exchange.depth, exchange.messages - exchange.posted);
  for (uint64_t i = 0; i < burst; ++i)
    if (post(exchange)) fail("a message was refused");
  exchange.posted += burst;
}

extern "C" [[gnu::noipa]] void receiver_turn(Exchange& exchange) {
  End& end = exchange.receiver;
  const size_t count = end.poll();
  exchange.received += count;
  if (exchange.writes) return;
  for (size_t i = 0; i < count; ++i) end.post_receive(exchange.length);
}

extern "C" [[gnu::noipa]] void empty_poll(End& end) {
  if (end.poll() != 0) fail("a message came that nobody sent");
}

// --- The two calls between which an answer is counted. They stand before those of the C library.

extern "C" ssize_t recv(int socket, void* buffer, size_t bytes, int flags) {
  static const auto next = reinterpret_cast<decltype(&recv)>(dlsym(RTLD_NEXT, "recv"));
  if (!answering) return next(socket, buffer, bytes, flags);
  CALLGRIND_TOGGLE_COLLECT;
  return next(socket, buffer, bytes, flags);
}

extern "C" ssize_t send(int socket, const void* buffer, size_t bytes, int flags) {
  static const auto next = reinterpret_cast<decltype(&send)>(dlsym(RTLD_NEXT, "send"));
  if (std::exchange(answering, false)) CALLGRIND_TOGGLE_COLLECT;
  return next(socket, buffer, bytes, flags);
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

void start(Exchange& exchange) {
  // A lone message over RD is acknowledged after a delay only, by the clock; two are at once.
  if (exchange.sender.qp.query().type == diwarp::QpType::rd)
    exchange.depth = std::max(exchange.depth, uint32_t{2});
  for (uint32_t i = 0; i < exchange.depth; ++i) exchange.receiver.post_receive(exchange.length);
}

void run(Exchange& exchange) {
  int idle = 0;
  while (exchange.sent < exchange.messages || exchange.received < exchange.messages) {
    const uint64_t before = exchange.posted + exchange.sent + exchange.received;
    sender_turn(exchange);
    // Also where nothing moves: RD's receiver may owe an acknowledgement, by the clock.
    if (exchange.received < exchange.posted || idle != 0) receiver_turn(exchange);
    const bool moved = exchange.posted + exchange.sent + exchange.received != before;
    idle = moved ? 0 : idle + 1;
    if (idle == idle_turns) fail("the messages stopped: is the interface lo up?");
  }
}

void send_message(End& end, uint32_t length) {
  if (end.qp.post_send({.sges = end.memory.sge(0, length)})) fail("a send was refused");
}

// Until a message has come; then answers it and posts the next receive.
void answer(End& end, uint32_t length) {
  answering = true;
  bool received = false;
  while (!received) {
    const size_t count = end.poll();
    for (size_t i = 0; i < count; ++i)
      received |= end.completions[i].opcode == diwarp::WcOpcode::recv;
  }
  send_message(end, length);
  end.post_receive(length);
}

// Each end has polled its own completion before it looks for the other's message.
void ping_pong(End& one, End& other, uint64_t messages, uint32_t length) {
  one.post_receive(length);
  other.post_receive(length);
  send_message(one, length);
  if (one.poll() != 1) fail("a message was not sent at once");
  for (uint64_t i = 0; i < messages; ++i) {
    End& end = i % 2 == 0 ? other : one;
    answer(end, length);
    if (end.poll() != 1) fail("an answer was not sent at once");
  }
}

void poll_both(End& one, End& other) {
  for (int i = 0; i < first_polls; ++i)
    if (one.poll() + other.poll() != 0) fail("a message came that nobody sent");
}

void poll_in_vain(End& end, uint64_t polls) {
  for (uint64_t i = 0; i < polls; ++i) empty_poll(end);
}

struct Operation {
  std::string_view name;
  diwarp::QpType type;
  bool writes = false;
};

constexpr std::array operations = {Operation{"ud-send", diwarp::QpType::ud},
                                   Operation{"ud-write-record", diwarp::QpType::ud, true},
                                   Operation{"rd-send", diwarp::QpType::rd},
                                   Operation{"rc-send", diwarp::QpType::rc},
                                   Operation{"rc-answer", diwarp::QpType::rc},
                                   Operation{"ud-empty-poll", diwarp::QpType::ud},
                                   Operation{"rc-empty-poll", diwarp::QpType::rc}};

const Operation& operation_named(std::string_view name) {
  const auto* const found = std::find_if(operations.begin(), operations.end(),
                                         [&](const Operation& one) { return one.name == name; });
  if (found == operations.end())
    fail(
        "the operation is ud-send, ud-write-record, rd-send, rc-send, rc-answer, ud-empty-poll or "
        "rc-empty-poll");
  return *found;
}

Exchange exchange_between(End& sender, End& receiver, const Operation& operation) {
  const bool connected = operation.type == diwarp::QpType::rc;
  return {
      .sender = sender,
      .receiver = receiver,
      .destination = connected ? diwarp::Address{} : receiver.qp.address(),
      .writes = operation.writes,
      .target = {receiver.memory.rkey(), reinterpret_cast<uintptr_t>(receiver.bytes.data())},
  };
}

uint64_t number(const char* text, uint64_t least, uint64_t most) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != 0 || value < least || value > most) fail("a number is out of range");
  return value;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4 || count > 5) fail("usage: count_messages OPERATION MESSAGES DEPTH [BYTES]");
  const Operation& operation = operation_named(words[1]);
  const uint64_t messages = number(words[2], 1, 1'000'000'000);
  const auto depth = static_cast<uint32_t>(number(words[3], 1, max_depth));
  const auto length = count == 5 ? static_cast<uint32_t>(number(words[4], 0, 4096)) : 64;
  End sender(operation.type), receiver(operation.type);
  const bool connected = operation.type == diwarp::QpType::rc;
  if (connected) connect(sender, receiver);
  poll_both(sender, receiver);
  if (operation.name.ends_with("empty-poll")) {
    poll_in_vain(receiver, messages);
  } else if (operation.name == "rc-answer") {
    ping_pong(sender, receiver, messages, length);
  } else {
    Exchange exchange = exchange_between(sender, receiver, operation);
    exchange.depth = depth;
    exchange.length = length;
    start(exchange);
    exchange.messages = first_messages;
    run(exchange);
    poll_both(sender, receiver);
    exchange.messages += messages;
    run(exchange);
  }
}
