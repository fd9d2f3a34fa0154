// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "rnic/datagram/datagram_builder.h"

namespace diwarp::rnic {

/// Something of a queue pair over datagrams that has datagrams to send: its send queue, its Reads,
/// the responses to others' Reads, control messages. The DatagramSender asks all in turn. With the
/// baton.
class DatagramSource {
 public:
  DatagramSource() = default;
  virtual ~DatagramSource() = default;
  DatagramSource(const DatagramSource&) = delete;
  DatagramSource& operator=(const DatagramSource&) = delete;

  /// Whether fill() would find nothing to add, as far as the source has noted: it is not called
  /// then.
  bool is_idle() const { return idle_; }

  /// Adds datagrams (with this source in their tags) while `builder` is open, and no more than
  /// there are. Takes nothing for sent: a datagram that sent() does not report is added anew next
  /// time.
  virtual void fill(DatagramBuilder& builder, Time now) = 0;
  /// The link took the datagram with this tag. Called in the order of adding.
  virtual void sent(const DatagramTag& tag) = 0;
  /// The link did not take the datagram with this tag, or never will (refused() follows): ask
  /// again in the next fill().
  virtual void unsent(const DatagramTag& /*tag*/) {}
  /// The link will never take the datagram with this tag; those before it were sent. `error` is an
  /// errno; EMSGSIZE: the path may carry less than it did, and max_datagram() tells so by now.
  virtual void refused(const DatagramTag& tag, int error) = 0;

 protected:
  /// A source that says so in fill() has to take it back with the next that there is to send.
  void set_idle(bool idle) { idle_ = idle; }

 private:
  bool idle_ = false;
};

}  // namespace diwarp::rnic
