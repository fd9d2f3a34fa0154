// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "diwarp/types.h"

namespace diwarp::fuzz {

/// Every Send of a run. The first eight bytes of one are its number, so that what is delivered
/// tells which it is; shorter ones are checked for nothing.
class VerbsMessages {
 public:
  /// A message goes to whatever queue pair has the address when it arrives: `to` is the device and
  /// number, which another one may have later. `from` is never used again.
  struct Ends {
    uint32_t from = 0;
    uint64_t to = 0;
    bool ordered = false;  ///< delivered in the order of posting
  };

  /// Fills `memory` with the next message, which is posted only once confirm() was called.
  void write(std::span<std::byte> memory);
  void confirm(const Ends& ends);

  /// A receive of the queue pair `to` brought these bytes.
  void delivered(uint64_t to, std::span<const std::byte> bytes);

 private:
  struct Message {
    Ends ends;
    size_t length = 0;
    bool over = false;  // delivered
  };

  void check_order(const Ends& ends, uint64_t number);

  size_t length_ = 0;  // of the message written last
  std::vector<Message> posted_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> newest_;  // delivered, of each pair of ends
};

}  // namespace diwarp::fuzz
