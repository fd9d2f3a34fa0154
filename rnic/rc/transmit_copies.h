// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "base/counters.h"
#include "diwarp/types.h"
#include "rnic/rc/rc_fpdu.h"
#include "rnic/rc/scratch.h"

namespace diwarp::rnic {

/// How many bytes that are copied first a burst has at most: those of Read responses with CRCs, and
/// of all with StreamOptions::copy_payload. The bytes that a longer copy pushes out of the cache
/// cost more than fewer system calls save.
/// Measured as kLoneBurstBytes was, of RDMA Writes: 0.67 with 128 KiB, 0.74 with 256 KiB, 0.85 with
/// this, 0.83 with 1 MiB.
inline constexpr size_t kStagedBurstBytes = size_t{512} << 10;

/// Copies of bytes that RcTransmit, its owner, cannot send from the application's memory. Memory
/// that peers read may change meanwhile, as may all where StreamOptions::copy_payload says so, and
/// the bytes that are sent have to be those of the CRC: they are staged here, from the first FPDU
/// that is framed to the last. And with markers, one whole FPDU is encoded here.
class TransmitCopies {
 public:
  /// Copies the FPDU's payload from the memory of its message, `source`. Where there is no memory
  /// for a burst's, it is one of this FPDU.
  RcFramed stage(RcFpdu& fpdu, std::span<const Sge> source, size_t burst_bytes, Counters& counters);
  /// Nothing is framed, so that what was staged is needed no more.
  void clear_staged() { staged_ = 0; }

  /// Memory for an FPDU with markers. False, and counted: there is none now.
  bool reserve_marked(size_t bytes, Counters& counters) {
    return reserve(marked_, bytes, counters);
  }
  Bytes marked() const { return marked_.bytes(); }

  bool keeps_memory() const { return staging_.size() != 0 || marked_.size() != 0; }
  /// Frees memory that was not used since the last call. True if there may be some to free later.
  bool trim(bool in_use);
  void release();

 private:
  bool reserve(Scratch& copies, size_t bytes, Counters& counters);

  Scratch marked_;
  Scratch staging_;
  size_t staged_ = 0;  // bytes of it in use
  bool used_ = false;  // either of them, since the last trim()
};

}  // namespace diwarp::rnic
