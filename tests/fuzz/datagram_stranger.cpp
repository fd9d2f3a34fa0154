// SPDX-License-Identifier: Apache-2.0
#include "fuzz/datagram_stranger.h"

#include <utility>

#include "fuzz/stranger_messages.h"

namespace diwarp::fuzz {

DatagramStranger::DatagramStranger(llp::MemoryNetwork& network, const Address& address,
                                   uint32_t incarnation, StrangerTarget target)
    : link_(network.open(address)),
      target_(std::move(target)),
      knowledge_{.incarnation = incarnation} {}

void DatagramStranger::act(Input& input) {
  switch (input.u8() % 12) {
    case 0:
      return send_noise(input);
    case 1:
      return send_again(input);
    case 2:
      return send_control(input);
    case 3:
      return change_names(input);
    case 4:
      return send_open();
    case 5:
    case 6:
      return send_reliable(input);
    case 7:
    case 8:
      return send_reliable_segment(input);
    default:
      return send_segment(input);
  }
}

void DatagramStranger::send(Datagram datagram) {
  constexpr size_t kMost = 1472;
  if (datagram.size() > kMost) datagram.resize(kMost);
  const ConstBytes piece(datagram);
  const llp::OutgoingDatagram outgoing{target_.address, {&piece, 1}};
  link_->send({&outgoing, 1});
  sent_bytes_ += datagram.size();
}

/// One of sixteen is damaged or cut.
void DatagramStranger::send_distorted(Input& input, Datagram datagram) {
  const uint8_t bits = input.u8();
  if (bits >= 0xf8 && !datagram.empty())
    datagram[input.below(static_cast<uint32_t>(datagram.size()))] ^= std::byte{1};
  else if (bits >= 0xf0)
    datagram.resize(input.below(static_cast<uint32_t>(datagram.size()) + 1));
  send(std::move(datagram));
}

void DatagramStranger::send_segment(Input& input) {
  Datagram datagram = test::to_bytes(make_segment(input, target_, knowledge_));
  send_distorted(input, std::move(datagram));
}

// --- Reliable datagrams.

void DatagramStranger::send_reliable(Input& input) {
  const auto kind = static_cast<uint8_t>(2 + input.u8() % 7);
  if (kind == test::kRdOpen) return send_open();
  test::ReliableHeader made = make_header(input, knowledge_, kind);
  made.content = make_content(input, knowledge_, kind);
  send_distorted(input, test::to_bytes(knowledge_.incarnation, made));
}

void DatagramStranger::send_reliable_segment(Input& input) {
  const test::ReliableHeader names = make_header(input, knowledge_, test::kRdData);
  test::Segment made = make_segment(input, target_, knowledge_);
  made.datagram_class = 1;
  made.rd_header = test::to_bytes(names);
  send_distorted(input, test::to_bytes(made));
}

void DatagramStranger::send_open() {
  // A valid proof may be among what was learnt.
  is_known_ = is_known_ || knowledge_.peer_incarnation != 0;
  send(test::to_bytes(knowledge_.incarnation, {.kind = test::kRdOpen,
                                               .window = 100,
                                               .epoch = knowledge_.epoch,
                                               .peer_incarnation = knowledge_.peer_incarnation,
                                               .content = knowledge_.proof}));
}

// --- Control messages.

void DatagramStranger::send_control(Input& input) {
  test::Control made{.incarnation = knowledge_.incarnation};
  made.type = static_cast<uint8_t>(input.u8() % 4);
  made.content =
      made.type == test::kError ? make_error_content(input, knowledge_) : knowledge_.proof;
  if (made.type == test::kEcho) is_known_ = true;
  send_distorted(input, test::to_bytes(made));
}

// --- Others.

/// A datagram that came from the target, or that with a byte changed and the CRC made right.
void DatagramStranger::send_again(Input& input) {
  if (knowledge_.heard.empty()) return;
  Datagram datagram = knowledge_.heard[input.below(static_cast<uint32_t>(knowledge_.heard.size()))];
  is_known_ = true;  // it may be the answer to a Challenge
  const uint8_t at = input.u8();
  if (at + 4u < datagram.size()) {
    datagram[at] = static_cast<std::byte>(input.u8());
    datagram.resize(datagram.size() - 4);
    test::append_crc(datagram);
  }
  send(std::move(datagram));
}

void DatagramStranger::send_noise(Input& input) {
  Datagram datagram;
  const uint8_t bits = input.u8();
  test::append_prefix(datagram, 2, bits % 3, bits >> 6, 0, knowledge_.incarnation);
  const auto rest = input.bytes(input.u8() % 64);
  datagram.insert(datagram.end(), rest.begin(), rest.end());
  test::append_crc(datagram);
  send_distorted(input, std::move(datagram));
}

void DatagramStranger::change_names(Input& input) {
  switch (input.u8() % 4) {
    case 0:
      knowledge_.incarnation = input.u8() % 4;
      break;
    case 1:
      ++knowledge_.epoch;
      break;
    case 2:
      knowledge_.msn += 1 + input.u8();
      break;
    default:
      knowledge_.msn += input.u32();
  }
}

// --- What comes back.

void DatagramStranger::hear() {
  while (link_->receive(batch_) != 0)
    for (const llp::IncomingDatagram& one : batch_.datagrams()) {
      knowledge_.learn(Datagram(one.bytes.begin(), one.bytes.end()));
      heard_bytes_ += one.bytes.size();
    }
  require(is_known_ || heard_bytes_ <= sent_bytes_,
          "More was answered to a source that is not validated than came from it");
}

}  // namespace diwarp::fuzz
