// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <memory>

#include <diwarp/verbs.h>

#include "base/clock.h"
#include "fuzz/datagram_end.h"
#include "fuzz/datagram_stranger.h"
#include "fuzz/input.h"
#include "llp/memory/memory_network.h"

namespace diwarp::fuzz {

/// A queue pair, the target, its honest peer, and strangers who know more than they should: all on
/// a network in memory, in a time that is moved by hand.
class DatagramScene {
 public:
  /// The input says how the queue pairs are made.
  explicit DatagramScene(Input& input);

  /// One thing happens; then the devices come to rest.
  void act(Input& input);
  /// Everything has to come to an end.
  void finish();

 private:
  Device& add_device(const char* host);
  StrangerTarget target_for_strangers();
  void act_as_application(Input& input, DatagramStranger& stranger);
  void post_to(Input& input, DatagramEnd& from, DatagramEnd& peer, const Address& to);
  void change_target(Input& input);
  void pass_time(Input& input);
  void ask_target(Input& input);
  void settle();
  void look();

  ManualClock clock_;
  std::shared_ptr<llp::MemoryNetwork> network_;
  std::deque<Device> devices_;
  QueuePairInit options_;
  DatagramEnd target_;
  DatagramEnd honest_;
  std::array<DatagramStranger, 3> strangers_;
};

}  // namespace diwarp::fuzz
