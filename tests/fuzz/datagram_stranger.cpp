// SPDX-License-Identifier: Apache-2.0
#include "fuzz/datagram_stranger.h"

#include <algorithm>
#include <utility>

#include "stack/rd_sequence.h"

namespace diwarp::fuzz {

using test::ReliableHeader;
using test::Segment;

namespace {

constexpr size_t kRdHeader = 24;

std::vector<std::byte> filled(size_t length, uint8_t value) {
  return std::vector<std::byte>(length, static_cast<std::byte>(value));
}

}  // namespace

DatagramStranger::DatagramStranger(llp::MemoryNetwork& network, const Address& address,
                                   uint32_t incarnation, Target target)
    : link_(network.open(address)), target_(std::move(target)), incarnation_(incarnation) {}

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

// --- Segments.

Segment DatagramStranger::segment(Input& input) {
  Segment made{.incarnation = incarnation_};
  const uint8_t kind = input.u8();
  const uint8_t bits = input.u8();
  made.msn = msn_ + input.u8() % 8;
  made.last = (bits & 1) == 0;
  made.solicited = (bits & 2) != 0;
  if ((bits & 4) != 0) made.immediate = bits;
  switch (kind % 4) {
    case 0:
      fill_send(input, made, bits);
      break;
    case 1:
      fill_record(input, made, bits);
      break;
    case 2:
      fill_read_request(input, made, bits);
      break;
    default:
      fill_read_response(input, made, bits);
  }
  if (kind < 0xf0) return made;
  made.ddp_reserved = input.u8() & 15;
  made.rdmap_version = input.u8() & 3;
  made.ddp_version = input.u8() & 3;
  made.queue_number = input.u8() & 1;
  made.wrong_form = input.flag();
  return made;
}

void DatagramStranger::fill_send(Input& input, Segment& made, uint8_t bits) {
  const uint8_t place = input.u8();
  made.offset = place < 0xf0 ? place % 8 * 16u : input.u32();
  made.payload = filled((bits & 8) != 0 ? input.u8() * 4u : 16, 0x5a);
  made.q_key = target_.q_key ^ ((bits & 0xc0) == 0xc0 ? 1u : 0u);
  if ((bits & 0x30) != 0x30) return;
  made.opcode = made.solicited ? test::kSolicitedInvalidate : test::kSendInvalidate;
  made.q_key = target_.stag(input.u8());
}

void DatagramStranger::fill_record(Input& input, Segment& made, uint8_t bits) {
  const uint8_t place = input.u8();
  made.opcode = test::kWriteRecord;
  made.stag = target_.stag(input.u8());
  made.offset = place % 8 * 16u;
  made.payload = filled((bits & 8) != 0 ? input.u8() * 4u : 16, 0x33);
  made.message_length = (bits & 16) != 0 ? input.u16() : 64;
  made.last = (bits & 1) == 0 && made.offset + made.payload.size() == *made.message_length;
  made.tagged_offset = target_.base + made.offset + (place >> 3) * 32u;
  if ((bits & 0xe0) == 0xe0) made.tagged_offset = input.u64();
}

void DatagramStranger::fill_read_request(Input& input, Segment& made, uint8_t bits) {
  made.opcode = test::kReadRequest;
  made.sink_stag = input.u8();
  made.read_length = (bits & 8) != 0 ? input.u16() : 64;
  made.source_stag = target_.stag(input.u8());
  made.source_offset = target_.base + ((bits & 16) != 0 ? input.u16() : 0);
  if ((bits & 0xe0) == 0xe0) made.source_offset = input.u64();
  if ((bits & 0xe0) == 0xc0) made.payload = filled(3, 1);
}

void DatagramStranger::fill_read_response(Input& input, Segment& made, uint8_t bits) {
  made.opcode = test::kReadResponse;
  made.stag = sink_ + ((bits & 0xe0) == 0xe0 ? input.u8() : 0);
  made.tagged_offset = (bits & 8) != 0 ? input.u8() * 16u : 0;
  const uint32_t length = (bits & 16) != 0 ? input.u8() * 4u : std::min(sink_length_, 1200u);
  made.payload = filled(length, 0x77);
  made.last = ((bits & 1) == 0) == (made.tagged_offset + length == sink_length_);
}

void DatagramStranger::send_segment(Input& input) {
  Datagram datagram = test::to_bytes(segment(input));
  send_distorted(input, std::move(datagram));
}

// --- Reliable datagrams.

/// Right for the association, but for what the input changes.
ReliableHeader DatagramStranger::header(Input& input, uint8_t kind) {
  const uint8_t bits = input.u8();
  ReliableHeader made{.kind = kind,
                      .flags = static_cast<uint8_t>(bits >= 0xf0 ? 1 : 0),
                      .window = static_cast<uint16_t>((bits & 1) != 0 ? input.u8() : 100),
                      .epoch = epoch_,
                      .peer_epoch = peer_epoch_,
                      .peer_incarnation = peer_incarnation_,
                      .acknowledged = acknowledged_};
  if (kind >= test::kRdData && kind <= test::kRdFailure) made.sequence = next_++;
  if (kind == test::kRdProbe) made.sequence = next_ - 1;
  if (kind == test::kRdRefusal || kind == test::kRdReset) made.sequence = acknowledged_ + 1;
  if (kind == test::kRdReset) made.window = 0;
  if (kind == test::kRdReset) made.acknowledged = 0;
  if ((bits & 6) == 6) made.sequence += input.u8() - 128u;
  if ((bits & 24) == 24) made.acknowledged += input.u8() - 128u;
  if ((bits & 0x60) == 0x60) made.sequence = input.u32();
  return made;
}

std::vector<std::byte> DatagramStranger::content(Input& input, uint8_t kind) {
  std::vector<std::byte> made;
  switch (kind) {
    case test::kRdSkip:
      return test::skip_content(static_cast<uint8_t>(input.u8() % 6),
                                input.flag() ? sink_ : msn_ + input.u8() % 8);
    case test::kRdFailure:
      test::append(made, sink_, 4);
      test::append(made, input.u32(), 4);
      return made;
    case test::kRdRefusal:
      test::append(made, input.u32(), 4);
      return made;
    case test::kRdAcknowledgement:
      for (uint32_t words = input.u8() % 4; words > 0; --words) test::append(made, input.u64(), 8);
      return made;
    default:
      return made;
  }
}

void DatagramStranger::send_reliable(Input& input) {
  const auto kind = static_cast<uint8_t>(2 + input.u8() % 7);
  if (kind == test::kRdOpen) return send_open();
  ReliableHeader made = header(input, kind);
  made.content = content(input, kind);
  send_distorted(input, test::to_bytes(incarnation_, made));
}

void DatagramStranger::send_reliable_segment(Input& input) {
  const ReliableHeader names = header(input, test::kRdData);
  Segment made = segment(input);
  made.datagram_class = 1;
  made.rd_header = test::to_bytes(names);
  send_distorted(input, test::to_bytes(made));
}

void DatagramStranger::send_open() {
  is_known_ = is_known_ || peer_incarnation_ != 0;  // a valid proof may be among what was learnt
  send(test::to_bytes(incarnation_, {.kind = test::kRdOpen,
                                     .window = 100,
                                     .epoch = epoch_,
                                     .peer_incarnation = peer_incarnation_,
                                     .content = proof_}));
}

// --- Control messages.

void DatagramStranger::send_control(Input& input) {
  test::Control made{.incarnation = incarnation_};
  made.type = static_cast<uint8_t>(input.u8() % 4);
  made.content = made.type == test::kError ? error_content(input) : proof_;
  if (made.type == test::kEcho) is_known_ = true;
  send_distorted(input, test::to_bytes(made));
}

/// About something that the target sent.
std::vector<std::byte> DatagramStranger::error_content(Input& input) {
  const uint8_t bits = input.u8();
  test::ErrorContent made{.layer = static_cast<uint8_t>(bits & 3),
                          .type = static_cast<uint8_t>(bits >> 2 & 3),
                          .code = static_cast<uint8_t>(bits >> 4 & 7),
                          .segment_bytes = input.u8()};
  const size_t headers = input.flag() ? 46 : input.flag() ? 26 : 18;
  for (const Datagram& one : heard_)
    if (one.size() >= 8 + headers)
      made.headers.assign(one.begin() + 8, one.begin() + 8 + static_cast<ptrdiff_t>(headers));
  return test::to_bytes(made);
}

// --- Others.

/// A datagram that came from the target, or that with a byte changed and the CRC made right.
void DatagramStranger::send_again(Input& input) {
  if (heard_.empty()) return;
  Datagram datagram = heard_[input.below(static_cast<uint32_t>(heard_.size()))];
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
  test::append_prefix(datagram, 2, bits % 3, bits >> 6, 0, incarnation_);
  const auto rest = input.bytes(input.u8() % 64);
  datagram.insert(datagram.end(), rest.begin(), rest.end());
  test::append_crc(datagram);
  send_distorted(input, std::move(datagram));
}

void DatagramStranger::change_names(Input& input) {
  switch (input.u8() % 4) {
    case 0:
      incarnation_ = input.u8() % 4;
      break;
    case 1:
      ++epoch_;
      break;
    case 2:
      msn_ += 1 + input.u8();
      break;
    default:
      msn_ += input.u32();
  }
}

// --- What comes back.

void DatagramStranger::hear() {
  while (link_->receive(batch_) != 0)
    for (const llp::IncomingDatagram& one : batch_.datagrams())
      learn(Datagram(one.bytes.begin(), one.bytes.end()));
  require(is_known_ || heard_bytes_ <= sent_bytes_,
          "More was answered to a source that is not validated than came from it");
}

void DatagramStranger::learn(const Datagram& datagram) {
  constexpr size_t kRemembered = 4;
  require(datagram.size() >= 12 && test::has_right_crc(datagram), "A wrong datagram was sent");
  heard_bytes_ += datagram.size();
  switch (test::class_of(datagram)) {
    case 0:
      learn_request(test::read_segment(datagram));
      break;
    case 1:
      learn_reliable(datagram);
      break;
    default:
      peer_incarnation_ = test::read_control(datagram).incarnation;
      if (test::read_control(datagram).type == test::kChallenge)
        proof_ = test::read_control(datagram).content;
  }
  heard_.push_back(datagram);
  if (heard_.size() > kRemembered) heard_.pop_front();
}

void DatagramStranger::learn_reliable(const Datagram& datagram) {
  const ReliableHeader heard = test::read_reliable(datagram);
  if (heard.kind == test::kRdReset) return;
  const bool is_new = heard.epoch != peer_epoch_;
  peer_incarnation_ = test::read_prefix(datagram).incarnation;
  peer_epoch_ = heard.epoch;
  if (is_new || heard.kind == test::kRdOpen) learn_numbers();
  if (heard.kind == test::kRdOpen) return;
  if (heard.kind <= test::kRdFailure) acknowledged_ = heard.sequence;
  next_ = heard.acknowledged + 1;
  if (heard.kind == test::kRdData) learn_request(test::read_segment(datagram, kRdHeader));
}

void DatagramStranger::learn_request(const Segment& segment) {
  if (segment.opcode != test::kReadRequest) return;
  sink_ = segment.sink_stag;
  sink_length_ = segment.read_length;
}

void DatagramStranger::learn_numbers() {
  const test::EndName here{incarnation_, epoch_};
  const test::EndName there{peer_incarnation_, peer_epoch_};
  next_ = test::first_number(here, there);
  acknowledged_ = test::first_number(there, here) - 1;
}

}  // namespace diwarp::fuzz
