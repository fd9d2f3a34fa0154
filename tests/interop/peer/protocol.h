// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The application protocol that both peers of the interoperability tests speak, over the very
/// connection that is tested.
///
/// Each side keeps a fixed number of receives posted, all of one size (the slots), so that any
/// message finds one. A message of the protocol is one Send of 40 bytes, integers big-endian:
///
///     magic (4) type (1) op (1) actor (1) fault (1) size (4) seed (4) status (4) key (4)
///     address (8) reserved, 0 (8)
///
/// The client decides what is done. One step:
///
///     client                                server
///     order: op, actor, fault, size, seed   ->
///       (actor server: key, address of what is exposed)
///                                        <- ready: key, address (actor client)
///     the actor does the operation: a Send of `size` bytes, a Write into what the other side
///     exposed, or a Read from it
///     done (actor client; not with a Send)  ->
///                                        <- result: status 0 if all was well so far
///
/// The receiver of the bytes verifies them against the pattern of `seed`, a Write's or Read's
/// surroundings included. `key` is also what a Send with Invalidate invalidates. After the last
/// step the client sends `bye`, the server answers `bye`, and the client disconnects. In a step
/// with a fault the operation is one that must fail: nothing follows it but the end of the
/// connection, which each side reports. If both were told to greet, the server begins with `hello`.
namespace interop {

enum class Op : uint8_t { send, send_solicited, send_invalidate, send_both, write, read };
enum class Actor : uint8_t { client, server };

/// The fault of an operation.
enum class Fault : uint8_t {
  none,
  wrong_stag,     ///< a key that was never given out
  out_of_bounds,  ///< one byte more than is exposed
  before_base,    ///< one byte before what is exposed
  no_right,       ///< the region lacks the right to write, or to read
  invalidated,    ///< the region was exposed, and is no more
  no_receive,     ///< more Sends than receives are posted
  too_long,       ///< a Send longer than the receive
};

enum class Type : uint8_t { order = 1, ready, done, result, bye, hello };

struct Message {
  Type type = Type::order;
  Op op = Op::send;
  Actor actor = Actor::client;
  Fault fault = Fault::none;
  uint32_t size = 0;
  uint32_t seed = 0;
  uint32_t status = 0;
  uint32_t key = 0;
  uint64_t address = 0;
};

inline constexpr size_t kMessageSize = 40;

void encode(const Message& message, std::span<std::byte> bytes);
/// Nothing if the bytes are no message of the protocol.
std::optional<Message> decode(std::span<const std::byte> bytes);

/// The byte at `index` of the pattern of `seed`.
constexpr std::byte pattern(uint32_t seed, size_t index) {
  return static_cast<std::byte>(
      (seed * 151 + index * 167 + (index >> 8) * 101 + (index >> 16) * 53) & 0xff);
}
void fill(std::span<std::byte> bytes, uint32_t seed);
/// The first byte that is not the pattern's.
std::optional<size_t> first_difference(std::span<const std::byte> bytes, uint32_t seed);

bool is_send(Op op);
bool is_solicited(Op op);
bool invalidates(Op op);

// By their names as above. Throw std::invalid_argument on others.
Op parse_op(std::string_view name);
Actor parse_actor(std::string_view name);
Fault parse_fault(std::string_view name);
std::string name_of(Op op);

}  // namespace interop
