// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/counters.h"

namespace diwarp {

/// The counters of a device, in memory that other processes of the same user may read (a sealed
/// memfd: base/counters_block.h) and nobody but this process can write, cut or fill with holes. The
/// memory is there in advance, so that counting never fails.
///
/// A forked child has neither the memory nor the descriptor. Where the environment variable
/// DIWARP_COUNTERS is "private", or the system does not give such memory, the counters lie in
/// memory of this process's own; whether they do makes no difference to those who count.
class SharedCounters {
 public:
  /// `device`: its address, for readers.
  explicit SharedCounters(const std::string& device);
  ~SharedCounters();
  SharedCounters(const SharedCounters&) = delete;
  SharedCounters& operator=(const SharedCounters&) = delete;

  Counters& get() { return *counters_; }
  const Counters& get() const { return *counters_; }
  bool shared() const { return file_ != nullptr; }

 private:
  class File;

  std::unique_ptr<File> file_;
  std::unique_ptr<Counters> private_;
  Counters* counters_;
};

}  // namespace diwarp
