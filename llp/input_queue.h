// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

namespace diwarp::llp {

/// Takes what comes to many links off the kernel (a ring that it fills), or off other processes, so
/// that one look finds all that have input. Its links announce themselves here, by the key that
/// set_key() gave them, when input has come that receive() has not handed out. Any thread.
class InputQueue {
 public:
  virtual ~InputQueue() = default;

  /// Polls readable while gather() has something to do.
  virtual int descriptor() const = 0;

  /// Takes over what came. `told`: the poller has just said that the descriptor is readable.
  virtual void gather(bool told) = 0;

  /// Whether all input of its links comes by the queue. Else their descriptors tell of some, too.
  virtual bool gathers_all() const { return true; }

  /// The key of a link that has announced itself since it was last returned; nullptr: no other has.
  virtual void* next_ready() = 0;

  /// How long all is well without a gather() while the descriptor stays silent: not at all where
  /// links have announced themselves, Duration::max() where nothing is to be done.
  virtual Duration silence() = 0;
};

}  // namespace diwarp::llp
