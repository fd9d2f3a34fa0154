// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace diwarp::rnic {

class InputSource;

/// The last two sources whose input an input queue announced, the later one first: one of them is
/// not the one that asks whether it is alone. Its InputSet owns it; it holds no source that the set
/// does not serve.
class RecentAnnouncements {
 public:
  /// The input queues are asked once more.
  void count_gather() { ++gathers_; }
  void add(const InputSource& source) {
    if (last_[0].source != &source) last_[1] = last_[0];
    last_[0] = {&source, gathers_};
  }
  /// The source goes out of service.
  void forget(const InputSource& source) {
    for (Announced& announced : last_)
      if (announced.source == &source) announced = {};
  }
  /// Whether another source than this announced input within so many gathers.
  bool has_other(const InputSource& source, uint64_t within) const {
    const Announced& last = last_[last_[0].source == &source ? 1 : 0];
    return last.source != nullptr && gathers_ - last.gather <= within;
  }

 private:
  struct Announced {
    const InputSource* source = nullptr;
    uint64_t gather = 0;
  };

  std::array<Announced, 2> last_;
  uint64_t gathers_ = 0;
};

}  // namespace diwarp::rnic
