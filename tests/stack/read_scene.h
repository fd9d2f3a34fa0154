// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "stack/support.h"

namespace diwarp::test {

using Datagram = std::vector<std::byte>;

/// Someone on the in-memory network who sends what he likes, and sees what is sent to him.
class Peer {
 public:
  explicit Peer(World& world, uint16_t port = 0, const char* host = "10.0.1.9")
      : link_(world.network->open(Address::parse(host, port))) {}

  Address address() const { return link_->local_address(); }
  void send(const Address& to, const Datagram& datagram) {
    const ConstBytes piece(datagram);
    const llp::OutgoingDatagram outgoing{to, {&piece, 1}};
    REQUIRE(link_->send({&outgoing, 1}).sent == 1);
  }
  void send(const Address& to, const Segment& segment) { send(to, to_bytes(segment)); }
  void send(const Address& to, const Control& control) { send(to, to_bytes(control)); }

  /// All that has come since the last call.
  std::vector<Datagram> receive() {
    std::vector<Datagram> all;
    while (link_->receive(batch_) != 0)
      for (const llp::IncomingDatagram& one : batch_.datagrams())
        all.emplace_back(one.bytes.begin(), one.bytes.end());
    return all;
  }

 private:
  std::unique_ptr<llp::DatagramLink> link_;
  llp::ReceiveBatch batch_{16, 2048, 64};
};

/// The datagrams that went over a link, and a rule that can be changed for the lost ones.
struct WatchedLink {
  std::vector<Datagram> sent = {};  // lost or not
  std::vector<Datagram> passed = {};
  llp::DropRule lose = {};
  llp::Impairment impairment = {};
  llp::ImpairedDatagramLink* link = nullptr;

  World::Wrap wrap(World& world) {
    return [this, &world](World::Link inner) -> World::Link {
      llp::Impairment made = impairment;
      made.drop_if = [this](uint64_t index, ConstBytes bytes) {
        return lose && lose(index, bytes);
      };
      auto impaired = std::make_unique<llp::ImpairedDatagramLink>(
          std::move(inner), made, world.clock, [this](ConstBytes bytes, llp::Verdict verdict) {
            sent.emplace_back(bytes.begin(), bytes.end());
            const bool whole = verdict != llp::Verdict::dropped &&
                               verdict != llp::Verdict::corrupted &&
                               verdict != llp::Verdict::truncated;
            if (whole) passed.push_back(sent.back());
          });
      link = impaired.get();
      return impaired;
    };
  }

  std::vector<Segment> segments(uint8_t opcode) const {
    std::vector<Segment> found;
    for (const Datagram& datagram : sent)
      if (!is_control(datagram) && read_segment(datagram).opcode == opcode)
        found.push_back(read_segment(datagram));
    return found;
  }
  std::vector<Control> controls(uint8_t type) const {
    std::vector<Control> found;
    for (const Datagram& datagram : sent)
      if (is_control(datagram) && read_control(datagram).type == type)
        found.push_back(read_control(datagram));
    return found;
  }
  std::vector<Segment> requests() const { return segments(kReadRequest); }
  std::vector<Segment> responses() const { return segments(kReadResponse); }
};

inline bool is_response(ConstBytes datagram) {
  return !is_control(datagram) && (read_be(datagram, 9, 1) & 15) == kReadResponse;
}

struct ReadSceneOptions {
  PartyOptions reader = {.memory = 1 << 20};
  PartyOptions target = {.memory = 1 << 20};
  llp::Impairment from_reader = {};
  llp::Impairment from_target = {};
};

/// One who reads, and one who is read from: memory with a pattern.
struct ReadScene {
  explicit ReadScene(const ReadSceneOptions& options = {})
      : from_reader{.impairment = options.from_reader},
        from_target{.impairment = options.from_target},
        reader_device(world.add_device(from_reader.wrap(world))),
        target_device(world.add_device(from_target.wrap(world))),
        reader(reader_device, options.reader),
        target(target_device, options.target),
        source(target.pd, target.memory, Access::remote_read) {
    target.fill(pattern(target.memory.size(), 7));
  }

  RemoteMemory remote(size_t offset = 0) const { return {source.rkey(), source.base() + offset}; }
  /// Posts a Read of the target's memory into the same place of the reader's.
  std::error_code post(size_t length, uint64_t wr_id = 0, const ReadLimits& limits = {},
                       size_t offset = 0) {
    const Sge sge = reader.mr.sge(offset, length);
    return reader.qp.post_read({.wr_id = wr_id,
                                .sges = {sge},
                                .destination = target.address(),
                                .remote = remote(offset),
                                .limits = limits});
  }
  std::vector<WorkCompletion> read(size_t length, const ReadLimits& limits = {}) {
    REQUIRE_FALSE(post(length, 0, limits));
    world.settle();
    return drain(reader.send_cq);
  }
  void forget_wires() {
    for (WatchedLink* wire : {&from_reader, &from_target}) {
      wire->sent.clear();
      wire->passed.clear();
    }
  }
  /// The target knows where the reader is.
  void get_acquainted() {
    REQUIRE(read(1000).size() == 1);
    forget_wires();
    std::fill(reader.memory.begin(), reader.memory.end(), std::byte{0});
  }
  bool arrived(size_t length, size_t offset = 0) {
    return same(reader.bytes(offset, length), target.bytes(offset, length));
  }
  uint64_t count(const char* counter) const { return reader_device.counter(counter); }
  uint64_t target_count(const char* counter) const { return target_device.counter(counter); }

  World world;
  WatchedLink from_reader;
  WatchedLink from_target;
  Device& reader_device;
  Device& target_device;
  Party reader;
  Party target;
  MemoryRegion source;
};

/// One who reads, from a target that is played by hand.
struct ScriptedScene {
  explicit ScriptedScene(const PartyOptions& options = {.memory = 1 << 20})
      : reader(device, options) {}

  std::error_code post(size_t length, uint64_t wr_id = 0, const ReadLimits& limits = {},
                       size_t offset = 0) {
    const Sge sge = reader.mr.sge(offset, length);
    const std::error_code error = reader.qp.post_read({.wr_id = wr_id,
                                                       .sges = {sge},
                                                       .destination = target.address(),
                                                       .remote = {0xABCDEF01, 5000 + offset},
                                                       .limits = limits});
    world.settle();
    return error;
  }
  /// The requests that came since the last call.
  std::vector<Segment> requests() {
    std::vector<Segment> all;
    for (const Datagram& datagram : target.receive())
      if (!is_control(datagram)) all.push_back(read_segment(datagram));
    return all;
  }
  /// A segment of the response to a request, with bytes that tell where they belong. It is the last
  /// one where it ends at the request's end.
  static Segment part(const Segment& request, uint32_t offset, uint32_t length) {
    std::vector<std::byte> payload;
    for (uint64_t at = request.source_offset + offset; payload.size() < length; ++at)
      payload.push_back(byte_at(at));
    return {.last = offset + length == request.read_length,
            .payload = payload,
            .opcode = kReadResponse,
            .stag = request.sink_stag,
            .tagged_offset = request.sink_offset + offset};
  }
  static std::byte byte_at(uint64_t source_offset) {
    return static_cast<std::byte>(source_offset % 251 + 1);
  }
  void answer(const Segment& segment) {
    target.send(reader.address(), segment);
    world.settle();
  }
  void answer(const Segment& request, uint32_t offset, uint32_t length) {
    answer(part(request, offset, length));
  }
  void answer_all(const Segment& request) {
    for (uint32_t offset = 0; offset < request.read_length; offset += 1400)
      answer(request, offset, std::min(request.read_length - offset, 1400U));
  }
  /// Whether exactly these bytes of the reader's memory are what a target sent, and all others
  /// zero.
  bool holds(const std::vector<ValidityMap::Range>& ranges) const {
    std::vector<std::byte> expected(reader.memory.size());
    for (const auto& [offset, length] : ranges)
      for (size_t at = offset; at < offset + length; ++at) expected[at] = byte_at(5000 + at);
    return expected == reader.memory;
  }
  std::vector<WorkCompletion> completions() { return drain(reader.send_cq); }
  uint64_t count(const char* counter) const { return device.counter(counter); }

  World world;
  Device& device = world.add_device();
  Party reader;
  Peer target{world};
};

using Ranges = std::vector<ValidityMap::Range>;

inline Ranges valid_ranges(const WorkCompletion& completion) {
  Ranges ranges;
  for (const ValidityMap::Range range : completion.validity.ranges()) ranges.push_back(range);
  return ranges;
}

}  // namespace diwarp::test
