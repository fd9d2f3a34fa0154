// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace diwarp::tools {

/// Which way a message goes. The two ways differ in contents, so a buffer that was never written
/// cannot pass for an answer.
enum class Way : uint8_t { there, back };

/// Writes a message's number, modulo 2^32, in its first bytes (as many as fit, at most 4; little
/// endian). Every message of the tools begins so, which tells late messages from awaited ones.
void stamp(std::span<std::byte> message, uint64_t number);

/// stamp(), and the rest of the bytes from the size, the number and the way.
void fill(std::span<std::byte> message, uint64_t number, Way way);

/// fill() if the contents are to be verified, else stamp().
void write_message(std::span<std::byte> message, uint64_t number, Way way, bool verified);

/// The number that is in the message and nearest to `expected`, since only its low bits are there;
/// nothing if the message is empty. With 1 byte it is right within 127 of `expected`.
std::optional<uint64_t> number_of(std::span<const std::byte> message, uint64_t expected);

/// The first byte that is not what fill() writes; nothing if all are.
std::optional<size_t> first_difference(std::span<const std::byte> message, uint64_t number,
                                       Way way);

}  // namespace diwarp::tools
