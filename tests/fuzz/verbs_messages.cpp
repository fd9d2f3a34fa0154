// SPDX-License-Identifier: Apache-2.0
#include "fuzz/verbs_messages.h"

#include <algorithm>

#include "fuzz/input.h"
#include "fuzz/pattern.h"
#include "fuzz/ulpdu.h"

namespace diwarp::fuzz {
namespace {

constexpr size_t kNumberBytes = 8;

ByteList contents(uint64_t number, size_t length) {
  ByteList bytes;
  test::append(bytes, number, kNumberBytes);
  const ByteList rest = pattern(static_cast<uint32_t>(number), length);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  bytes.resize(length);
  return bytes;
}

}  // namespace

void VerbsMessages::write(std::span<std::byte> memory) {
  length_ = memory.size();
  const ByteList bytes = contents(posted_.size(), length_);
  std::copy(bytes.begin(), bytes.end(), memory.begin());
}

void VerbsMessages::confirm(const Ends& ends) { posted_.push_back({ends, length_}); }

void VerbsMessages::delivered(uint64_t to, std::span<const std::byte> bytes) {
  if (bytes.size() < kNumberBytes) return;
  const uint64_t number = number_in(bytes, 0, kNumberBytes);
  require(number < posted_.size(), "bytes were delivered that nobody sent");
  Message& message = posted_[number];
  require(message.ends.to == to, "a message was delivered to another queue pair");
  require(!message.over, "a message was delivered twice");
  message.over = true;
  const ByteList sent = contents(number, message.length);
  require(std::equal(bytes.begin(), bytes.end(), sent.begin(), sent.end()),
          "other bytes were delivered than sent");
  if (message.ends.ordered) check_order(message.ends, number);
}

void VerbsMessages::check_order(const Ends& ends, uint64_t number) {
  const auto [newest, first] = newest_.try_emplace({ends.from, ends.to}, number);
  require(first || newest->second < number, "messages were delivered out of order");
  newest->second = number;
}

}  // namespace diwarp::fuzz
