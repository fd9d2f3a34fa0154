// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace diwarp::tools {

/// What one end knows of where messages may have got lost.
struct LossFacts {
  /// How much each counter has grown; one that is missing has not.
  std::map<std::string, uint64_t, std::less<>> counters;
  std::vector<DatagramError> errors;
  SocketBufferAttributes receive_buffer;  ///< asked 0: it is not known
};

/// Sentences with the likely causes, the most certain one first, and what to do about each. None
/// where nothing tells.
std::vector<std::string> hints_of(const LossFacts& facts);

/// "text At the server: a. b." for a message to the user.
std::string with_hints(std::string text, const std::vector<std::string>& hints);

/// Collects the facts of this process's end since it was made.
class LossWatch {
 public:
  explicit LossWatch(const Device& device, uint64_t udp_buffer);

  /// The facts by now; errors that were told once are not told again.
  LossFacts facts();
  std::vector<std::string> hints() { return hints_of(facts()); }

 private:
  std::map<std::string, uint64_t, std::less<>> counters() const;

  const Device& device_;
  const uint64_t udp_buffer_;
  std::map<std::string, uint64_t, std::less<>> before_;
};

/// Takes what is in a queue pair's error queue, for the LossWatch of this process. Called before
/// the queue pair goes.
void note_errors(QueuePair& queue_pair) noexcept;

}  // namespace diwarp::tools
