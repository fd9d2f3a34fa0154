// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace diwarp::rnic {

/// Whether more sources have input than may be busy-polled. An overload lasts until in an epoch, so
/// many looks at the poller, few enough sources had any. Its InputSet owns it, and tells it of each
/// look.
class Overload {
 public:
  /// `most`: the sources that may be busy-polled. `epoch`: in looks.
  constexpr Overload(size_t most, uint32_t epoch) : most_(most), looks_per_epoch_(epoch) {}

  bool lasts() const { return lasts_; }
  void begin() {
    lasts_ = true;
    begin_epoch();
  }
  /// Before a look: an epoch that is over may end the overload.
  void before_look() {
    if (!lasts_ || looks_ != looks_per_epoch_) return;
    lasts_ = sources_ > most_;
    begin_epoch();
  }
  void after_look() {
    if (lasts_) ++looks_;
  }
  /// A look found input of a source. `epoch` is the source's: the one in which it was last counted.
  void count(uint32_t& epoch) {
    if (epoch == epoch_) return;
    epoch = epoch_;
    ++sources_;
  }

 private:
  void begin_epoch() {
    sources_ = looks_ = 0;
    ++epoch_;
  }

  const size_t most_;
  const uint32_t looks_per_epoch_;
  bool lasts_ = false;
  uint32_t epoch_ = 1;
  uint32_t looks_ = 0;    // in this epoch
  uint32_t sources_ = 0;  // that had input in it
};

}  // namespace diwarp::rnic
