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

/// What went over a link, and a rule that can be changed for what is lost there.
struct Wire {
  std::vector<Datagram> sent = {};  // lost or not
  llp::DropRule lose = {};
  llp::Impairment impairment = {};

  World::Wrap wrap(World& world) {
    return [this, &world](World::Link inner) -> World::Link {
      llp::Impairment made = impairment;
      made.drop_if = [this](uint64_t index, ConstBytes bytes) {
        return lose && lose(index, bytes);
      };
      return std::make_unique<llp::ImpairedDatagramLink>(
          std::move(inner), made, world.clock, [this](ConstBytes bytes, llp::Verdict) {
            sent.emplace_back(bytes.begin(), bytes.end());
          });
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

  RemoteMemory remote(size_t offset = 0) const {
    return {source.rkey(), source.base() + offset};
  }
  /// Posts a Read of the target's memory into the same place of the reader's.
  std::error_code post(size_t length, uint64_t wr_id = 0, const ReadLimits& limits = {},
                       size_t offset = 0) {
    const Sge sge = reader.mr.sge(offset, length);
    return reader.qp.post_read({.wr_id = wr_id,
                                .local = {sge},
                                .destination = target.address(),
                                .remote = remote(offset),
                                .limits = limits});
  }
  std::vector<WorkCompletion> read(size_t length, const ReadLimits& limits = {}) {
    REQUIRE_FALSE(post(length, 0, limits));
    world.settle();
    return drain(reader.send_cq);
  }
  /// The target knows where the reader is.
  void get_acquainted() {
    REQUIRE(read(1000).size() == 1);
    from_reader.sent.clear();
    from_target.sent.clear();
    std::fill(reader.memory.begin(), reader.memory.end(), std::byte{0});
  }
  bool arrived(size_t length, size_t offset = 0) {
    return same(reader.bytes(offset, length), target.bytes(offset, length));
  }
  uint64_t count(const char* counter) const { return reader_device.counter(counter); }
  uint64_t target_count(const char* counter) const { return target_device.counter(counter); }

  World world;
  Wire from_reader;
  Wire from_target;
  Device& reader_device;
  Device& target_device;
  Party reader;
  Party target;
  MemoryRegion source;
};

}  // namespace diwarp::test
