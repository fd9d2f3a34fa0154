// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <diwarp/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace diwarp::compat {

using TimePoint = std::chrono::steady_clock::time_point;

/// Names a request: its number is the requester's own choice.
struct UdRequestKey {
  Address requester;
  uint64_t number = 0;
  friend bool operator==(const UdRequestKey&, const UdRequestKey&) = default;
};

/// The requests that came to a UD service: those that the program has not answered yet, and the
/// answers to the others, so that a request that is repeated gets the same one. Protocol alone:
/// bytes and time come in, results go out.
class UdRequestsSeen {
 public:
  struct Limits {
    /// Requests without an answer yet; more are dropped, and repeated by their requesters.
    size_t max_open = 1024;
    /// Of these, those of one host, so that a host that floods leaves room for others.
    size_t max_open_of_host = 512;
    /// Answers that are kept; newer ones take the place of the oldest.
    size_t max_answered = 1024;
    /// How long an answer is kept: longer than a requester repeats its request.
    Duration answer_time = std::chrono::seconds(60);
  };
  enum class Verdict : uint8_t {
    fresh,     ///< the program is to be asked
    waiting,   ///< the program has been asked, and has not answered yet
    answered,  ///< `answer` is to be sent again
    no_room,
  };
  struct Result {
    Verdict verdict;
    const std::vector<std::byte>* answer = nullptr;
  };

  UdRequestsSeen() = default;
  explicit UdRequestsSeen(const Limits& limits) : limits_(limits) {}

  Result note_request(const UdRequestKey& key, TimePoint now);
  /// False where no such request waits: the answer is not kept.
  bool note_answer(const UdRequestKey& key, std::vector<std::byte> answer, TimePoint now);

  size_t open() const { return open_; }
  size_t answered() const { return answered_.size(); }

 private:
  struct Hash {
    size_t operator()(const UdRequestKey& key) const {
      return key.requester.hash() ^ static_cast<size_t>(key.number * 0x9e3779b97f4a7c15);
    }
  };
  struct Answered {
    UdRequestKey key;
    TimePoint since;
  };

  bool has_room(const Address& requester) const;
  void close(const Address& requester);
  void forget_old_answers(TimePoint now);
  void forget_oldest_answer();

  Limits limits_;
  /// Empty: there is no answer yet.
  std::unordered_map<UdRequestKey, std::vector<std::byte>, Hash> requests_;
  std::deque<Answered> answered_;  // the oldest first
  size_t open_ = 0;
  std::unordered_map<Address, size_t> open_of_host_;  // by address without port
};

}  // namespace diwarp::compat
