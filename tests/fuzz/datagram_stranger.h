// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "fuzz/input.h"
#include "llp/memory/memory_network.h"
#include "stack/datagram.h"

namespace diwarp::fuzz {

/// Someone on the network who learns what can be learnt from what a queue pair sends, and sends it
/// what the input says, made right by that as far as the input says so.
class DatagramStranger {
 public:
  /// The stranger's knowledge of its target at the beginning.
  struct Target {
    Address address;
    uint32_t q_key = 0;
    uint64_t base = 0;                      ///< of the regions
    std::function<uint32_t(uint8_t)> stag;  ///< of one of the regions
  };

  DatagramStranger(llp::MemoryNetwork& network, const Address& address, uint32_t incarnation,
                   Target target);

  Address address() const { return link_->local_address(); }
  /// Sends one datagram, or a few.
  void act(Input& input);
  /// Learns from all that has come.
  void hear();
  /// The target's application knows the stranger.
  void introduce() { is_known_ = true; }

 private:
  using Datagram = std::vector<std::byte>;

  void send(Datagram datagram);
  void send_distorted(Input& input, Datagram datagram);
  test::Segment segment(Input& input);
  void fill_send(Input& input, test::Segment& segment, uint8_t bits);
  void fill_record(Input& input, test::Segment& segment, uint8_t bits);
  void fill_read_request(Input& input, test::Segment& segment, uint8_t bits);
  void fill_read_response(Input& input, test::Segment& segment, uint8_t bits);
  void send_segment(Input& input);
  void send_reliable_segment(Input& input);
  void send_reliable(Input& input);
  test::ReliableHeader header(Input& input, uint8_t kind);
  std::vector<std::byte> content(Input& input, uint8_t kind);
  void send_open();
  void send_control(Input& input);
  std::vector<std::byte> error_content(Input& input);
  void send_again(Input& input);
  void send_noise(Input& input);
  void change_names(Input& input);

  void learn(const Datagram& datagram);
  void learn_reliable(const Datagram& datagram);
  void learn_request(const test::Segment& segment);
  void learn_numbers();

  const std::unique_ptr<llp::DatagramLink> link_;
  const Target target_;
  llp::ReceiveBatch batch_{16, 2048, 64};
  std::deque<Datagram> heard_;                                 // the last ones
  std::vector<std::byte> proof_ = std::vector<std::byte>(24);  // of a Challenge
  uint32_t incarnation_;
  uint32_t msn_ = 100;
  uint32_t epoch_ = 5;
  uint32_t peer_incarnation_ = 0;
  uint32_t peer_epoch_ = 0;
  uint32_t next_ = 0;          // own sequence number
  uint32_t acknowledged_ = 0;  // of the target's
  uint32_t sink_ = 0;          // of a Read of the target
  uint32_t sink_length_ = 0;
  bool is_known_ = false;
  size_t sent_bytes_ = 0;
  size_t heard_bytes_ = 0;
};

}  // namespace diwarp::fuzz
