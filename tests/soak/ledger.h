// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace soak {

/// What a process tells: counts of what it did, and findings. Lines of standard output.
class Ledger {
 public:
  /// One more of `name`, which has dots between its parts.
  void count(const std::string& name, uint64_t more = 1) { counts_[name] += more; }
  void verified(uint64_t bytes) { verified_ += bytes; }
  uint64_t counted(const std::string& name) const {
    const auto found = counts_.find(name);
    return found == counts_.end() ? 0 : found->second;
  }

  /// Something that must not be. `what` is one of wrong-byte, stuck, status, order, lost, twice,
  /// refusal.
  void finding(const std::string& what, const std::string& message);

  /// That byte `at` of `memory` is wrong. `where` says what the memory is.
  void wrong_byte(const std::string& where, std::span<const std::byte> memory, size_t at);

  void abort_at_finding(bool abort) { abort_ = abort; }

  /// Adds what was counted, resident memory in bytes and open descriptors.
  void round(nlohmann::json line) const;

  /// Prints one line, at once.
  static void print(const std::string& line);

 private:
  std::map<std::string, uint64_t> counts_;
  uint64_t verified_ = 0;
  uint64_t findings_ = 0;
  bool abort_ = false;
};

}  // namespace soak
