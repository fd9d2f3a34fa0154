// SPDX-License-Identifier: Apache-2.0
#include "fuzz/stranger_knowledge.h"

#include "fuzz/input.h"
#include "stack/rd_sequence.h"

namespace diwarp::fuzz {

using test::ReliableHeader;
using test::Segment;

namespace {

constexpr size_t kRdHeader = 24;

}  // namespace

void StrangerKnowledge::learn(const Datagram& datagram) {
  constexpr size_t kRemembered = 4;
  require(datagram.size() >= 12 && test::has_right_crc(datagram), "A wrong datagram was sent");
  switch (test::class_of(datagram)) {
    case 0:
      learn_request(test::read_segment(datagram));
      break;
    case 1:
      learn_reliable(datagram);
      break;
    default:
      peer_incarnation = test::read_control(datagram).incarnation;
      if (test::read_control(datagram).type == test::kChallenge)
        proof = test::read_control(datagram).content;
  }
  heard.push_back(datagram);
  if (heard.size() > kRemembered) heard.pop_front();
}

void StrangerKnowledge::learn_reliable(const Datagram& datagram) {
  const ReliableHeader header = test::read_reliable(datagram);
  if (header.kind == test::kRdReset) return;
  const bool is_new = header.epoch != peer_epoch;
  peer_incarnation = test::read_prefix(datagram).incarnation;
  peer_epoch = header.epoch;
  if (is_new || header.kind == test::kRdOpen) learn_numbers();
  if (header.kind == test::kRdOpen) return;
  if (header.kind <= test::kRdFailure) acknowledged = header.sequence;
  next = header.acknowledged + 1;
  if (header.kind == test::kRdData) learn_request(test::read_segment(datagram, kRdHeader));
}

void StrangerKnowledge::learn_request(const Segment& segment) {
  if (segment.opcode != test::kReadRequest) return;
  sink = segment.sink_stag;
  sink_length = segment.read_length;
}

void StrangerKnowledge::learn_numbers() {
  const test::EndName here{incarnation, epoch};
  const test::EndName there{peer_incarnation, peer_epoch};
  next = test::first_number(here, there);
  acknowledged = test::first_number(there, here) - 1;
}

}  // namespace diwarp::fuzz
