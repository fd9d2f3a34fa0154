// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/intrusive_list.h"
#include "rnic/engine/transmit_source.h"

namespace diwarp::rnic {

/// Whose turn it is to send: the policy of an engine. With its baton.
///
/// The engine serves sources in rounds. A source stands in line from add() until begin_round() or
/// next() returns it; it then sends one bounded burst. Where it has more to send it is added again
/// before next() is called. A source in line when next() returns null has its turn in a later
/// round, so a round must be bounded. A policy keeps its line as it likes: of a source it may use
/// the ListNode, and need not.
class TransmitScheduler {
 public:
  virtual ~TransmitScheduler() = default;

  /// Whether a source that would stand in line alone may as well be served without having stood
  /// there: the policy asks nothing of it then.
  virtual bool lets_lone_source_pass() const { return false; }

  /// Puts a source in line that does not stand there.
  virtual void add(TransmitSource& source) = 0;
  /// A source leaves the engine's service: nothing is kept of it, whether it stands in line or not.
  virtual void remove(TransmitSource& source) = 0;
  /// Whether no source stands in line.
  virtual bool empty() const = 0;

  /// Takes the first source of a new round out of the line; null where there is none.
  virtual TransmitSource* begin_round() = 0;
  /// The same for the next source of the round; null where the round is over. `work`: messages or
  /// segments that `served` has moved in its turn.
  virtual TransmitSource* next(TransmitSource& served, size_t work) = 0;
};

/// One burst each, in turn.
class RoundRobin final : public TransmitScheduler {
 public:
  bool lets_lone_source_pass() const override { return true; }
  void add(TransmitSource& source) override { line_.push_back(source); }
  void remove(TransmitSource& source) override;
  bool empty() const override { return line_.empty(); }
  TransmitSource* begin_round() override;
  TransmitSource* next(TransmitSource& served, size_t work) override;

 private:
  IntrusiveList<TransmitSource, TransmitTag> line_;
  TransmitSource* first_again_ = nullptr;  // served in this round, in line once more
};

}  // namespace diwarp::rnic
