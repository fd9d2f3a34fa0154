// SPDX-License-Identifier: Apache-2.0
#include "fuzz/rc_peer.h"

#include <algorithm>
#include <utility>

namespace diwarp::fuzz {
namespace {

using test::append;

constexpr size_t kLongest = 60000;  // of one segment

/// Lengths of all magnitudes up to 22 KB, small ones mostly.
size_t length_from(Input& in) {
  const size_t drawn = in.u8();
  if (drawn < 200) return drawn;
  return drawn < 228 ? (drawn - 200) * 64 : 8192 + (drawn - 228) * 512;
}

/// The tagged offset of `length` bytes: near the beginning of what the STag names, about its end,
/// or anywhere.
uint64_t offset_from(Input& in, unsigned how, unsigned stag, uint64_t length) {
  switch (how >> 5U) {
    case 7:
      return in.u64();
    case 6:
    case 5:
      return kBase + kNamed[stag & 7U] - length + (in.u8() & 1U);
    default:
      return kBase + in.u8() * 8U;
  }
}

}  // namespace

RcPeer::RcPeer(std::unique_ptr<llp::Stream> stream, const RcStart& start, STags stags,
               RcOutput& output)
    : stream_(std::move(stream), {.crc = start.parameters.crc,
                                  .marks = start.parameters.receive_markers,
                                  .target_marks = start.parameters.send_markers}),
      start_(start),
      stags_(std::move(stags)),
      output_(output) {}

void RcPeer::listen() {
  stream_.listen([this](std::span<const std::byte> ulpdu) { output_.take(ulpdu); });
}

void RcPeer::send(const Ulpdu& ulpdu, size_t spoil) {
  if (spoil != 0 && stream_.crc()) ends_ = true;
  if (spoil != 0 && !stream_.crc()) known_ = false;
  stream_.add(to_bytes(ulpdu), spoil);
}

void RcPeer::act(Input& in) {
  switch (in.below(16)) {
    case 0:
    case 1:
    case 2:
      return send_message(in);
    case 3:
      return send_immediate(in);
    case 4:
    case 5:
      return send_write(in);
    case 6:
    case 7:
      return send_read_request(in);
    case 8:
      return send_atomic_request(in);
    case 9:
    case 10:
      return answer(in);
    case 11:
      return answer_whole(in);
    case 12:
      return send_terminate(in);
    case 13:
      return send_any(in);
    case 14:
      return send_bytes(in);
    default:
      return do_to_stream(in);
  }
}

void RcPeer::make_ready(bool right) {
  if (start_.initiator || start_.parameters.ready == ReadyToReceive::none) return;
  if (!right) {
    known_ = false;  // what comes first may be taken for it
    return;
  }
  switch (start_.parameters.ready) {
    case ReadyToReceive::none:
      return;
    case ReadyToReceive::send:
      return send({.msn = msn_[0]++});
    case ReadyToReceive::write:
      return send({.tagged = true, .opcode = opcode::kWrite});
    case ReadyToReceive::read:
      return send(
          {.opcode = opcode::kReadRequest, .queue = 1, .msn = msn_[1]++, .body = ByteList(28)});
  }
}

/// One segment of a Send. Where its numbers are wrong nothing is delivered from there on.
void RcPeer::send_message(Input& in) {
  const unsigned how = in.u8();
  const bool last = (how & 1U) == 0;
  const size_t length = length_from(in);
  const unsigned wrong = (how & 0xE0U) == 0xE0U ? in.u8() : 0;
  send({.last = last,
        .opcode = static_cast<uint8_t>(opcode::kSend + (how >> 1U & 3U)),
        .stag = stags_(how >> 3U),
        .msn = msn_[0] + (wrong & 3U),
        .mo = static_cast<uint32_t>(message_.length) + (wrong >> 2U),
        .body = pattern(message_.seed, length, message_.length)});
  ends_ = ends_ || wrong != 0;
  message_.length += length;
  open_ = !last;
  if (open_) return;
  if (!ends_) sent_.push_back(message_);
  ++msn_[0];
  message_ = {.seed = message_.seed + 1};
}

void RcPeer::send_immediate(Input& in) {
  const unsigned how = in.u8();
  const uint64_t value = in.u16();
  Ulpdu ulpdu{.last = (how & 2U) == 0,
              .opcode = static_cast<uint8_t>(opcode::kImmediate + (how & 1U)),
              .msn = msn_[0]++};
  append(ulpdu.body, value, 8);
  const bool wrong = (how & 0xC0U) == 0xC0U;
  if (wrong) ulpdu.body.resize(how >> 2U & 15U);
  ends_ = ends_ || !ulpdu.last || ulpdu.body.size() != 8 || open_;
  send(ulpdu);
  if (!ends_) sent_.push_back({.immediate = value, .length = 8});
}

void RcPeer::send_write(Input& in) {
  const unsigned how = in.u8();
  const unsigned names = how >> 2U & 7U;
  const size_t length = length_from(in);
  send({.tagged = true,
        .last = (how & 1U) == 0,
        .opcode = opcode::kWrite,
        .stag = stags_(names),
        .offset = offset_from(in, how, names, length),
        .body = ByteList(length, std::byte{0x44})});
}

/// The sink tells RcOutput what the response has to carry.
void RcPeer::send_read_request(Input& in) {
  const unsigned how = in.u8();
  const unsigned names = how >> 2U & 7U;
  const uint64_t length = (how & 2U) != 0 ? in.u32() : length_from(in);
  const uint64_t offset = offset_from(in, how, names, length);
  const bool of_read_only = names == kNamesReadOnly;
  Ulpdu ulpdu{
      .last = (how & 1U) == 0, .opcode = opcode::kReadRequest, .queue = 1, .msn = msn_[1]++};
  append(ulpdu.body, of_read_only ? kReadOnlySink : 7U, 4);
  append(ulpdu.body, offset, 8);
  append(ulpdu.body, length, 4);
  append(ulpdu.body, stags_(names), 4);
  append(ulpdu.body, offset, 8);
  if ((how & 0xE2U) == 0xE2U) ulpdu.body.resize(in.below(40));
  send(ulpdu);
}

void RcPeer::send_atomic_request(Input& in) {
  const unsigned how = in.u8();
  Ulpdu ulpdu{.opcode = opcode::kAtomicRequest, .queue = 1, .msn = msn_[1]++};
  append(ulpdu.body, how & 3U, 4);
  append(ulpdu.body, in.u8(), 4);
  append(ulpdu.body, stags_(how >> 2U), 4);
  append(ulpdu.body, offset_from(in, how, how >> 2U & 7U, 8), 8);
  for (int i = 0; i < 4; ++i) append(ulpdu.body, in.u16(), 8);
  if ((how & 0xE3U) == 0xE3U) ulpdu.body.resize(in.below(64));
  send(ulpdu);
}

/// Answers the oldest request, perhaps not as it was asked.
void RcPeer::answer(Input& in) {
  if (output_.asked().empty()) return;
  const unsigned how = in.u8();
  return output_.asked().front().atomic ? answer_atomic(in, how) : answer_read(in, how);
}

void RcPeer::answer_read(Input& in, unsigned how) {
  RcAsked& asked = output_.asked().front();
  size_t length = (how & 1U) != 0 ? std::min<size_t>(asked.left, in.u8()) : asked.left;
  if ((how & 0x0EU) == 0x0EU) length += in.u8();
  length = std::min(length, kLongest);
  const bool last = (length == asked.left) != ((how & 0x30U) == 0x30U);
  const uint64_t offset = asked.offset + ((how & 0xC0U) == 0xC0U ? in.u8() : 0U);
  send({.tagged = true,
        .last = last,
        .opcode = opcode::kReadResponse,
        .stag = asked.sink + ((how & 0xC0U) == 0x80U ? 1U : 0U),
        .offset = offset,
        .body = pattern(kResponseSeed, length, offset)});
  if (length >= asked.left) return output_.asked().pop_front();
  asked.offset += length;
  asked.left -= static_cast<uint32_t>(length);
}

void RcPeer::answer_atomic(Input& in, unsigned how) {
  const RcAsked asked = output_.asked().front();
  output_.asked().pop_front();
  Ulpdu ulpdu{.opcode = opcode::kAtomicResponse, .queue = 3, .msn = msn_[3]++};
  append(ulpdu.body, asked.identifier + ((how & 3U) == 3U ? 1U : 0U), 4);
  append(ulpdu.body, in.u16(), 8);
  if ((how & 0xF0U) == 0xF0U) ulpdu.body.resize(how & 15U);
  send(ulpdu);
}

/// Answers the oldest request, if that is a Read, as it should be, in segments of one length.
void RcPeer::answer_whole(Input& in) {
  const size_t most = 1 + in.u8() * 16U;
  if (output_.asked().empty() || output_.asked().front().atomic) return;
  RcAsked asked = output_.asked().front();
  output_.asked().pop_front();
  bool last = false;
  while (!last) {
    const size_t length = std::min<size_t>(asked.left, most);
    last = length == asked.left;
    send({.tagged = true,
          .last = last,
          .opcode = opcode::kReadResponse,
          .stag = asked.sink,
          .offset = asked.offset,
          .body = pattern(kResponseSeed, length, asked.offset)});
    asked.offset += length;
    asked.left -= static_cast<uint32_t>(length);
  }
}

void RcPeer::send_terminate(Input& in) {
  const ByteList body = in.bytes(in.u8() & 63U);
  send({.opcode = opcode::kTerminate, .queue = 2, .msn = msn_[2]++, .body = body});
  ends_ = true;
}

/// A segment whose every field the input says.
void RcPeer::send_any(Input& in) {
  known_ = false;
  const unsigned how = in.u8();
  Ulpdu ulpdu{.tagged = (how & 1U) != 0,
              .last = (how & 2U) == 0,
              .opcode = static_cast<uint8_t>(how >> 4U),
              .stag = stags_(in.u8()),
              .offset = offset_from(in, in.u8(), how, 1),
              .queue = in.below(5)};
  ulpdu.msn = msn_[ulpdu.queue & 3U] + (in.u8() & 3U);
  ulpdu.mo = in.u8();
  ulpdu.control_error = (how & 12U) == 4U ? in.u8() : 0;
  ulpdu.rdmap_error = (how & 12U) == 8U ? in.u8() : 0;
  ulpdu.body = in.bytes(in.u8() & 63U);
  send(ulpdu, in.u8());
}

/// A ULPDU of bytes of the input, or these as they are.
void RcPeer::send_bytes(Input& in) {
  known_ = false;
  const bool framed = in.flag();
  const ByteList bytes = in.bytes(in.u8() & 63U);
  framed ? stream_.add(bytes) : stream_.add_raw(bytes);
}

void RcPeer::do_to_stream(Input& in) {
  switch (in.below(8)) {
    case 0:
      return stream_.end_sending();
    case 1:
      return stream_.reset();
    case 2:
      return stream_.close();
    default:
      return listen();
  }
}

void RcPeer::check_delivered(const WorkCompletion& completion, std::span<const std::byte> memory) {
  if (!known_) return;
  require(!sent_.empty(), "a message was delivered that the peer did not send");
  const RcMessage message = sent_.front();
  sent_.pop_front();
  require(completion.byte_count == message.length, "a message was delivered with another length");
  require((completion.opcode == WcOpcode::recv_immediate) == message.immediate.has_value(),
          "a Send was delivered as immediate data, or the reverse");
  if (message.immediate)
    require(completion.immediate == *message.immediate, "other immediate data were delivered");
  else
    require(is_pattern(memory.first(message.length), message.seed), "other bytes were delivered");
}

}  // namespace diwarp::fuzz
