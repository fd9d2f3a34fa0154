// SPDX-License-Identifier: Apache-2.0
#include "wireshark/view.h"

#include <string_view>

#include "dgram/rd_header.h"
#include "wire/datagrams.h"

namespace diwarp::test {
namespace {

using dgram::RdKind;

class View {
 public:
  void add(std::string_view name, uint64_t value) { add(name, std::to_string(value)); }
  void add(std::string_view name, const std::string& value) {
    text_ += (text_.empty() ? "" : " ") + std::string(name) + "=" + value;
  }
  void add(std::string_view name, ConstBytes bytes) {
    if (!bytes.empty()) add(name, hex_of(bytes));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_word(View& view, const std::string& prefix, const rdmap::DatagramSegment& segment) {
  switch (segment.opcode) {
    case rdmap::Opcode::read_request:
      return view.add(prefix + "nonce", segment.nonce);
    case rdmap::Opcode::send:
    case rdmap::Opcode::send_solicited:
      return view.add(prefix + "q_key", segment.q_key);
    default:
      return view.add(prefix + "invalidate_stag", segment.invalidate_stag);
  }
}

void add_record(View& view, const std::string& prefix, const rdmap::DatagramSegment& segment) {
  view.add(prefix + "msn", segment.msn);
  view.add(prefix + "mo", segment.message_offset);
  view.add(prefix + "message_length", segment.message_length);
}

void add_request(View& view, const std::string& prefix, const rdmap::ReadRequest& request) {
  view.add(prefix + "sink_stag", request.sink_stag);
  view.add(prefix + "sink_to", request.sink_offset);
  view.add(prefix + "read_size", request.length);
  view.add(prefix + "source_stag", request.source_stag);
  view.add(prefix + "source_to", request.source_offset);
}

/// The headers of a segment; without `whole` the DDP header alone.
void add_headers(View& view, const std::string& prefix, const rdmap::DatagramSegment& segment,
                 bool whole) {
  using rdmap::Opcode;
  const bool record = segment.opcode == Opcode::write_record;
  const bool tagged = record || segment.opcode == Opcode::read_response;
  view.add(prefix + "opcode", static_cast<uint64_t>(segment.opcode));
  view.add(prefix + "last", segment.last ? 1 : 0);
  view.add(prefix + "tagged", tagged ? 1 : 0);
  if (tagged) {
    view.add(prefix + "stag", segment.stag);
    view.add(prefix + "to", segment.tagged_offset);
  } else {
    add_word(view, prefix, segment);
    view.add(prefix + "msn", segment.msn);
    view.add(prefix + "mo", segment.message_offset);
  }
  if (record && whole) add_record(view, prefix, segment);
  if (segment.opcode == Opcode::read_request && whole) add_request(view, prefix, segment.request);
}

void add_segment(View& view, const rdmap::DatagramSegment& segment) {
  if (segment.has_immediate) view.add("immediate", segment.immediate);
  view.add("flags.solicited", segment.solicited() ? 1 : 0);
  add_headers(view, "ddp.", segment, true);
  view.add("payload_length", segment.payload.size());
  view.add("payload", segment.payload);
}

void add_error(View& view, const rdmap::ErrorReport& error) {
  view.add("error.layer", error.code.layer);
  view.add("error.type", error.code.type);
  view.add("error.code", error.code.code);
  if (error.headers.empty()) return;
  view.add("error.segment_length", error.segment_bytes);
  const auto about = rdmap::parse_error_headers(error.headers);
  if (!about) return;
  const bool tagged = (error.headers[0] & std::byte{0x80}) != std::byte{};
  add_headers(view, "error.ddp.", *about, error.headers.size() > (tagged ? 14U : 18U));
}

void add_proof(View& view, const std::string& prefix, const dgram::Challenge& challenge) {
  view.add(prefix + "nonce", challenge.nonce);
  view.add(prefix + "cookie", ConstBytes(challenge.cookie));
}

void add_control(View& view, const Verdict& verdict) {
  view.add("control.type", static_cast<uint64_t>(verdict.control.type));
  if (verdict.control.type == dgram::ControlType::error) return add_error(view, verdict.error);
  add_proof(view, "control.", verdict.control.challenge);
}

void add_code(View& view, uint32_t code) {
  view.add("rd.code.layer", code >> 28);
  view.add("rd.code.type", code >> 24 & 15);
  view.add("rd.code.code", code >> 16 & 255);
}

void add_map(View& view, const dgram::RdMap& map) {
  std::string words;
  for (size_t i = 0; i < map.count; ++i) {
    words += (words.empty() ? "" : ",") + std::to_string(map.words[i]);
  }
  if (!words.empty()) view.add("rd.map", words);
}

void add_content(View& view, RdKind kind, ConstBytes rest) {
  switch (kind) {
    case RdKind::skip: {
      const dgram::MessageName name = dgram::decode_rd_skip(rest);
      view.add("rd.skip.kind", static_cast<uint64_t>(name.kind));
      return view.add("rd.skip.number", name.number);
    }
    case RdKind::failure: {
      const dgram::RdFailure failure = dgram::decode_rd_failure(rest);
      view.add("rd.failure.sink_stag", failure.sink_stag);
      return add_code(view, failure.code);
    }
    case RdKind::acknowledgement:
      return add_map(view, dgram::decode_rd_map(rest));
    case RdKind::refusal:
      return add_code(view, dgram::decode_rd_code(rest));
    case RdKind::open:
      return add_proof(view, "rd.", dgram::decode_rd_proof(rest));
    default:
      return;
  }
}

/// Numbers counted from the first of their direction, which is 1.
void add_relative(View& view, const dgram::RdHeader& header, uint32_t incarnation) {
  if (header.kind == RdKind::open || header.kind == RdKind::reset) return;
  const dgram::EndNames own{.incarnation = incarnation, .epoch = header.epoch};
  const dgram::EndNames peer{.incarnation = header.peer_incarnation, .epoch = header.peer_epoch};
  const uint32_t first = dgram::first_sequence(own, peer);
  const uint32_t first_of_peer = dgram::first_sequence(peer, own);
  view.add("rd.relative_acknowledged", uint32_t{header.acknowledged - first_of_peer + 1});
  if (header.kind == RdKind::acknowledgement) return;
  const uint32_t base = header.kind == RdKind::refusal ? first_of_peer : first;
  view.add("rd.relative", uint32_t{header.sequence - base + 1});
}

void add_rd_header(View& view, const dgram::RdHeader& header) {
  view.add("rd.kind", static_cast<uint64_t>(header.kind));
  view.add("rd.flags", header.flags);
  view.add("rd.window", header.window);
  view.add("rd.epoch", header.epoch);
  view.add("rd.peer_epoch", header.peer_epoch);
  view.add("rd.peer_incarnation", header.peer_incarnation);
  view.add("rd.sequence", header.sequence);
  view.add("rd.acknowledged", header.acknowledged);
}

/// The checks of class RD, in the order in which its queue pairs have them.
Verdict reliable_verdict(Verdict verdict, dgram::ParsedRdHeader& parsed) {
  parsed = dgram::parse_rd_header(verdict.envelope.body);
  if (parsed.fault != dgram::RdHeaderFault::none) {
    verdict.drop = Counter::drop_rd_header;
  } else if (parsed.header.kind != RdKind::data) {
    if (verdict.envelope.labels.flags != 0) verdict.drop = Counter::drop_flags;
  } else {
    const auto inner = rdmap::parse_segment(verdict.envelope.labels.flags, parsed.rest);
    if (!inner.valid) verdict.drop = inner.drop_reason;
    verdict.segment = inner.segment;
  }
  return verdict;
}

void add_reliable(View& view, const Verdict& verdict, const dgram::ParsedRdHeader& parsed) {
  add_rd_header(view, parsed.header);
  add_relative(view, parsed.header, verdict.envelope.labels.incarnation);
  if (parsed.header.kind == RdKind::data) return add_segment(view, verdict.segment);
  add_content(view, parsed.header.kind, parsed.rest);
}

}  // namespace

std::string hex_of(ConstBytes bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<size_t>(byte >> 4)];
    text += kDigits[std::to_integer<size_t>(byte & std::byte{15})];
  }
  return text;
}

std::string view_of(ConstBytes datagram) {
  const auto envelope = dgram::Envelope::open(datagram);
  const bool reliable =
      envelope.valid && envelope.labels.datagram_class == dgram::DatagramClass::reliable;
  dgram::ParsedRdHeader parsed;
  const Verdict verdict =
      reliable ? reliable_verdict({.envelope = envelope}, parsed) : verdict_of(datagram);
  View view;
  view.add("verdict", verdict.drop ? std::string(Counters::name(*verdict.drop)) : "accepted");
  if (!envelope.valid) return view.text();
  view.add("class", static_cast<uint64_t>(envelope.labels.datagram_class));
  view.add("flags", envelope.labels.flags);
  view.add("incarnation", envelope.labels.incarnation);
  if (verdict.drop) return view.text();
  if (reliable) {
    add_reliable(view, verdict, parsed);
  } else if (envelope.labels.datagram_class == dgram::DatagramClass::control) {
    add_control(view, verdict);
  } else {
    add_segment(view, verdict.segment);
  }
  return view.text();
}

}  // namespace diwarp::test
