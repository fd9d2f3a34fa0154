// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/intrusive_list.h"
#include "rnic/engine/transmit_source.h"

namespace diwarp::rnic {

/// Whose turn it is to send: the policy of an engine. With its baton.
///
/// The engine serves sources in rounds. A source stands in line from add() until next() returns it;
/// it then sends one bounded burst, and served() tells how much that was. Where it has more to send
/// it is added again before served(). A round ends when next() returns null; what is in line then
/// has its turn in the next round, so a round must be bounded.
class TransmitScheduler {
 public:
  virtual ~TransmitScheduler() = default;

  /// Puts a source in line that does not stand there.
  virtual void add(TransmitSource& source) = 0;
  /// Takes a source out of the line; one that does not stand there, and is about to go, as well.
  virtual void remove(TransmitSource& source) = 0;
  /// Whether nobody stands in line.
  virtual bool empty() const = 0;

  virtual void begin_round() = 0;
  virtual TransmitSource* next() = 0;
  /// `work`: messages or segments that the source has moved in its turn.
  virtual void served(TransmitSource& source, size_t work) = 0;
};

/// One burst each, in turn.
class RoundRobin final : public TransmitScheduler {
 public:
  void add(TransmitSource& source) override { line_.push_back(source); }
  void remove(TransmitSource& source) override;
  bool empty() const override { return line_.empty(); }
  void begin_round() override { first_again_ = nullptr; }
  TransmitSource* next() override;
  void served(TransmitSource& source, size_t work) override;

 private:
  IntrusiveList<TransmitSource, ScheduledTag> line_;
  TransmitSource* first_again_ = nullptr;  // served in this round, in line once more
};

}  // namespace diwarp::rnic
