// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace interop {
namespace {

constexpr size_t kSurroundings = 64;
constexpr std::byte kUntouched{0xEE};
constexpr Duration kShort{100};
constexpr Duration kSlice{500};
constexpr uint32_t kNeverGiven = 0x5A5A5A00;

std::string describe(const Message& order) {
  return name_of(order.op) + " of " + std::to_string(order.size) + " bytes by the " +
         (order.actor == Actor::client ? "client" : "server");
}

void require_pattern(std::span<const std::byte> bytes, const Message& order) {
  if (const auto index = first_difference(bytes, order.seed)) {
    throw Failure(describe(order) + ": byte " + std::to_string(*index) + " is wrong");
  }
}

bool needs_memory(const Message& order) { return !is_send(order.op) || invalidates(order.op); }

}  // namespace

/// A fault may end the connection while the last message before it is still being handled.
template <typename Step>
void Exchange::do_step(const Message& order, Step step) {
  try {
    step();
  } catch (const ConnectionEnded&) {
    if (order.fault == Fault::none) throw;
    end_by_fault(order);
  }
}

void Exchange::run_client() {
  if (options_.greet) receive(Type::hello);
  uint32_t seed = 1;
  for (uint32_t round = 0; round < options_.rounds; ++round) {
    for (const Actor actor : options_.actors) {
      for (const Op op : options_.ops) {
        for (const uint32_t size : options_.sizes) {
          const Message order{
              .op = op, .actor = actor, .fault = options_.fault, .size = size, .seed = seed++};
          do_step(order, [&] { client_step(order); });
          if (options_.fault != Fault::none) return;
        }
      }
    }
  }
}

void Exchange::run_server() {
  if (options_.greet) send({.type = Type::hello});
  while (true) {
    const Message message = receive_message();
    if (message.type == Type::bye) break;
    if (message.type != Type::order) throw Failure("the client sent no order");
    do_step(message, [&] { server_step(message); });
    if (message.fault != Fault::none) return;
  }
}

void Exchange::part() {
  if (outcome_.ending.ended) return;
  try {
    send({.type = Type::bye});
  } catch (const ConnectionEnded&) {
    // The client may have had the server's, and gone, before this side is told that it went out.
    if (!options_.server) throw;
  }
  if (!options_.server) receive(Type::bye);
}

void Exchange::client_step(Message order) {
  ++outcome_.steps;
  if (order.actor == Actor::server) {
    const Message target = expose_for(order);
    order.key = target.key;
    order.address = target.address;
  }
  send(order);
  const Message ready = receive(Type::ready);
  if (order.fault != Fault::none) {
    if (order.actor == Actor::client) act_wrongly(order, ready);
    return end_by_fault(order);
  }
  if (order.actor == Actor::client) {
    act(order, ready);
    if (!is_send(order.op)) send({.type = Type::done});
  } else {
    die_if_told();
    if (is_send(order.op)) verify_received(order, order.key);
  }
  if (receive(Type::result).status != 0) throw Failure(describe(order) + ": the server says no");
  if (order.actor == Actor::server) {
    verify_exposed(order);
    endpoint_.withdraw();
  }
}

void Exchange::server_step(const Message& order) {
  ++outcome_.steps;
  Message ready{.type = Type::ready};
  if (order.actor == Actor::client) {
    ready = expose_for(order);
    ready.type = Type::ready;
  }
  send(ready);
  if (order.fault != Fault::none) {
    if (order.actor == Actor::server) act_wrongly(order, order);
    return end_by_fault(order);
  }
  if (order.actor == Actor::server) {
    act(order, order);
  } else {
    die_if_told();
    if (is_send(order.op)) {
      verify_received(order, ready.key);
    } else {
      receive(Type::done);
    }
    verify_exposed(order);
  }
  if (order.actor == Actor::client) endpoint_.withdraw();
  send({.type = Type::result});
}

std::span<std::byte> Exchange::exposed(const Message& order) {
  return std::span(region_).subspan(kSurroundings + order.seed % 8, order.size);
}

Message Exchange::expose_for(const Message& order) {
  if (is_send(order.op) && endpoint_.tells_all()) endpoint_.arm_solicited();
  Message target;
  if (!needs_memory(order)) return target;
  region_.assign(order.size + 2 * kSurroundings + 8, kUntouched);
  if (order.op == Op::read) fill(exposed(order), order.seed);
  const bool right = order.fault != Fault::no_right;
  // A region of no bytes cannot be registered everywhere.
  const auto memory = std::span(exposed(order).data(), std::max<size_t>(order.size, 1));
  target.key = endpoint_.expose(memory, {.write = right && order.op != Op::read,
                                         .read = right && order.op == Op::read,
                                         .invalidate = right && invalidates(order.op)});
  target.address = reinterpret_cast<uintptr_t>(memory.data());
  if (order.fault == Fault::invalidated) endpoint_.withdraw();
  return target;
}

void Exchange::act(const Message& order, const Message& target) {
  const bool read = order.op == Op::read;
  const auto local = (read ? endpoint_.sink() : endpoint_.outgoing()).first(order.size);
  if (read) {
    std::fill(local.begin(), local.end(), kUntouched);
  } else {
    fill(local, order.seed);
  }
  complete({order.op, local, target.key, target.address});
  if (read) require_pattern(local, order);
  outcome_.bytes += order.size;
}

void Exchange::act_wrongly(const Message& order, Message target) {
  uint32_t posts = 1;
  uint32_t size = order.size;
  if (order.fault == Fault::wrong_stag) target.key = kNeverGiven;
  if (order.fault == Fault::out_of_bounds) ++size;
  if (order.fault == Fault::before_base) --target.address;
  if (order.fault == Fault::no_receive) posts = 2 * endpoint_.slots();
  const auto local = order.op == Op::read ? endpoint_.sink() : endpoint_.outgoing();
  for (uint32_t i = 0; i < posts; ++i) {
    endpoint_.post({order.op, local.first(size), target.key, target.address});
  }
  // With several, siw sometimes leaves some without a completion when the connection ends.
  for (uint32_t i = 0; i < posts && outcome_.failed_status.empty(); ++i) {
    const auto completion = i == 0 ? next_or_end(&Endpoint::next_sent, "the wrong operation")
                                   : endpoint_.next_sent(kShort);
    if (completion && !completion->success) outcome_.failed_status = completion->status;
  }
}

void Exchange::end_by_fault(const Message& order) {
  outcome_.ending = endpoint_.wait_ended(options_.timeout);
  if (!outcome_.ending.ended) throw Failure(describe(order) + ": the connection did not end");
  if (region_.empty()) return;
  verify_surroundings(order);
  if (order.op == Op::write && std::any_of(exposed(order).begin(), exposed(order).end(),
                                           [](std::byte b) { return b != kUntouched; })) {
    throw Failure(describe(order) + ": the wrong Write wrote something");
  }
}

void Exchange::verify_surroundings(const Message& order) const {
  const size_t begin = kSurroundings + order.seed % 8;
  for (size_t i = 0; i < region_.size(); ++i) {
    const bool inside = i >= begin && i < begin + order.size;
    if (!inside && region_[i] != kUntouched) {
      throw Failure(describe(order) + ": a byte beside the exposed memory changed");
    }
  }
}

void Exchange::verify_exposed(const Message& order) {
  if (!needs_memory(order)) return;
  verify_surroundings(order);
  if (order.op != Op::write) return;
  require_pattern(exposed(order), order);
  outcome_.bytes += order.size;
}

void Exchange::verify_received(const Message& order, uint32_t key) {
  const Completion completion = receive_data();
  if (completion.bytes != order.size) {
    throw Failure(describe(order) + ": " + std::to_string(completion.bytes) + " bytes came");
  }
  require_pattern(endpoint_.slot(completion.id).first(order.size), order);
  endpoint_.post_receive(completion.id);
  if (endpoint_.tells_all()) {
    verify_invalidated(order, completion, key);
    verify_solicited(order);
  }
  outcome_.bytes += order.size;
}

void Exchange::verify_invalidated(const Message& order, const Completion& completion,
                                  uint32_t key) const {
  if (completion.invalidated != invalidates(order.op)) {
    throw Failure(describe(order) + (completion.invalidated ? ": an STag was invalidated"
                                                            : ": no STag was invalidated"));
  }
  if (completion.invalidated && completion.invalidated_key != key) {
    throw Failure(describe(order) + ": another STag was invalidated");
  }
}

void Exchange::verify_solicited(const Message& order) {
  const bool solicited = is_solicited(order.op);
  if (endpoint_.solicited_event(solicited ? options_.timeout : Duration(0)) == solicited) return;
  if (solicited) throw Failure(describe(order) + ": no solicited event");
  // A completion that failed raises one, too: the peer may be gone, right after its message.
  const auto next = endpoint_.next_received(Duration(0));
  if (next && !next->success) throw ConnectionEnded(next->status);
  throw Failure(describe(order) + ": a solicited event");
}

void Exchange::die_if_told() {
  if (options_.die_after == 0 || outcome_.steps < options_.die_after) return;
  std::puts("{\"ok\": true, \"died\": true}");
  std::fflush(stdout);
  ::_exit(0);
}

void Exchange::send(const Message& message) {
  const auto local = endpoint_.control().first(kMessageSize);
  encode(message, local);
  endpoint_.post({Op::send, local, 0, 0});
  await(&Endpoint::next_sent, "a Send");
}

void Exchange::complete(const Work& work) {
  endpoint_.post(work);
  die_if_told();
  await(&Endpoint::next_sent, name_of(work.op));
}

std::optional<Completion> Exchange::next_or_end(Next next, const std::string& what) {
  for (Duration waited{0}; waited < options_.timeout; waited += kSlice) {
    if (const auto completion = (endpoint_.*next)(kSlice)) return completion;
    // siw may leave a request without a completion when its connection breaks.
    if (!endpoint_.tells_all() && endpoint_.wait_ended(Duration(0)).ended) return std::nullopt;
  }
  throw Failure(what + " never completed");
}

Completion Exchange::await(Next next, const std::string& what) {
  const auto completion = next_or_end(next, what);
  if (!completion) throw ConnectionEnded(what + " was left without a completion");
  if (!completion->success) throw ConnectionEnded(completion->status);
  return *completion;
}

Completion Exchange::receive_data() { return await(&Endpoint::next_received, "a receive"); }

Message Exchange::receive_message() {
  const Completion completion = receive_data();
  const auto bytes = endpoint_.slot(completion.id).first(completion.bytes);
  const auto message = decode(bytes);
  if (!message) throw Failure("what came is no message of the protocol");
  endpoint_.post_receive(completion.id);
  return *message;
}

Message Exchange::receive(Type expected) {
  const Message message = receive_message();
  if (message.type != expected) throw Failure("another message than expected");
  return message;
}

}  // namespace interop
