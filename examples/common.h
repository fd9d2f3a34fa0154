// SPDX-License-Identifier: Apache-2.0
// What the examples share, so that each shows little but its subject.
#pragma once

#include <diwarp/verbs.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace example {

using namespace std::chrono_literals;

/// How long an end waits for the other.
inline constexpr auto kPatience = 20s;

/// Throws what a post_ call returned, if that is an error.
inline void check(std::error_code error) {
  if (error) throw std::system_error(error, "A request could not be posted");
}

/// The next completion. Throws if none comes, or its request failed.
inline diwarp::WorkCompletion next(diwarp::CompletionQueue& cq) {
  using diwarp::to_string;
  const auto wc = cq.wait(kPatience);
  if (!wc) throw std::runtime_error("nothing came: is the interface up, and the other end alive?");
  if (wc->status != diwarp::WcStatus::success)
    throw std::runtime_error("a request (" + std::string(to_string(wc->opcode)) +
                             ") failed: " + std::string(to_string(wc->status)));
  return *wc;
}

/// One end: a device of its own, as if on a host of its own, and one queue pair.
struct End {
  explicit End(diwarp::QpType type, const diwarp::DatagramOptions& datagram = {},
               const diwarp::DeviceOptions& options = {})
      : End(diwarp::Device::open("127.0.0.1", options), type, datagram) {}
  End(diwarp::Device opened, diwarp::QpType type, const diwarp::DatagramOptions& datagram = {})
      : device(std::move(opened)),
        qp(pd, {.type = type, .send_cq = cq, .recv_cq = cq, .datagram = datagram}) {}

  diwarp::Device device;
  diwarp::ProtectionDomain pd{device};
  diwarp::CompletionQueue cq{device, 256};
  diwarp::QueuePair qp;
};

/// The next peer that asks for a connection.
inline diwarp::ConnectionRequest next_request(diwarp::Listener& listener) {
  auto request = listener.get_request(kPatience);
  if (!request) throw std::runtime_error("nobody asked for a connection");
  return std::move(*request);
}

/// Text as private data, and the reverse, where what a terminal might obey is made visible.
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes)
    text += byte < std::byte{' '} || byte > std::byte{'~'} ? '?' : static_cast<char>(byte);
  return text;
}

/// A number in decimal digits and nothing else, at most `limit`.
inline uint64_t number(std::string_view text, uint64_t limit) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > limit)
    throw std::invalid_argument("\"" + text_of(bytes_of(text)) + "\" is no number from 0 to " +
                                std::to_string(limit));
  return value;
}

/// Sends up to 64 bytes of text. It is copied into the request, so it needs no memory region.
inline void send_text(End& end, std::string text, const diwarp::Address& destination = {}) {
  check(end.qp.post_send({.sges = diwarp::Sge{text.data(), static_cast<uint32_t>(text.size()), 0},
                          .flags = diwarp::SendFlags::signaled | diwarp::SendFlags::inline_data,
                          .destination = destination}));
}

/// The name of a region of memory for a peer, as private data: "STAG OFFSET".
inline std::string advertise(const diwarp::MemoryRegion& region) {
  return std::to_string(region.rkey()) + " " + std::to_string(region.base());
}
/// Throws std::invalid_argument if a peer sent anything else.
inline diwarp::RemoteMemory advertised(std::span<const std::byte> data) {
  const std::string text = text_of(data);
  const size_t space = std::min(text.find(' '), text.size() - 1);
  return {static_cast<diwarp::STag>(number(text.substr(0, space), UINT32_MAX)),
          number(text.substr(space + 1), UINT64_MAX)};
}

/// At the end of a program: throws where standard output has not taken all that was printed.
inline void finish_output() {
  if (!std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::runtime_error("standard output cannot be written: is the disk full?");
}

/// For programs without arguments.
inline void take_no_arguments(int argc) {
  if (argc > 1) throw std::invalid_argument("it takes no arguments: both ends are in one process");
}

}  // namespace example
