// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fuzz/input.h"
#include "fuzz/stranger_knowledge.h"
#include "llp/memory/memory_network.h"

namespace diwarp::fuzz {

/// Someone on the network who learns what can be learnt from what a queue pair sends, and sends it
/// what the input says, made right by that as far as the input says so.
class DatagramStranger {
 public:
  DatagramStranger(llp::MemoryNetwork& network, const Address& address, uint32_t incarnation,
                   StrangerTarget target);

  Address address() const { return link_->local_address(); }
  /// Sends one datagram, or a few.
  void act(Input& input);
  /// Learns from all that has come.
  void hear();
  /// The target's application knows the stranger.
  void introduce() { is_known_ = true; }

 private:
  using Datagram = StrangerKnowledge::Datagram;

  void send(Datagram datagram);
  void send_distorted(Input& input, Datagram datagram);
  void send_segment(Input& input);
  void send_reliable_segment(Input& input);
  void send_reliable(Input& input);
  void send_open();
  void send_control(Input& input);
  void send_again(Input& input);
  void send_noise(Input& input);
  void change_names(Input& input);

  const std::unique_ptr<llp::DatagramLink> link_;
  const StrangerTarget target_;
  StrangerKnowledge knowledge_;
  llp::ReceiveBatch batch_{16, 2048, 64};
  bool is_known_ = false;
  size_t sent_bytes_ = 0;
  size_t heard_bytes_ = 0;
};

}  // namespace diwarp::fuzz
