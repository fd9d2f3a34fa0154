// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dgram/identity.h"
#include "dgram/reorder_buffer.h"
#include "rd_receiving.h"
#include "rnic/datagram/rd/rd_associations.h"
#include "support/catch.h"

/// The associations of an RD queue pair, for tests of its parts.
namespace diwarp::rnic::parts {

inline constexpr uint32_t kPeerIncarnation = 0x7777;
inline constexpr Duration kPeerTimeout = std::chrono::seconds(10);

/// The associations of a queue pair with its peers, and all that they need.
struct Associating : Receiving {
  explicit Associating(const provider::QueuePairInit& chosen = rd_init()) : Receiving(chosen) {}
  ~Associating() {
    peers.table.for_each([this](RdPeer& one) { associations.drop(one); });
  }

  uint32_t own_incarnation(const RdPeer& to) { return identity.incarnation(to.address()); }

  // --- What a peer sends.

  /// An open of the peer that has a window for so many datagrams.
  void open_from(RdPeer& from, uint32_t epoch = 1, uint32_t incarnation = kPeerIncarnation,
                 uint16_t window = 100, uint8_t flags = 0) {
    associations.take_open(from,
                           {.kind = dgram::RdKind::open,
                            .flags = flags,
                            .window = window,
                            .epoch = epoch,
                            .peer_incarnation = own_incarnation(from)},
                           incarnation, now);
  }
  /// The peer challenges the open that it was sent, and accepts the one that answers.
  void accept_from(RdPeer& from, uint8_t flags = 0, uint32_t incarnation = kPeerIncarnation) {
    dgram::Handshake& handshake = from.handshake();
    REQUIRE(handshake.challenged(incarnation, {.nonce = handshake.proof().nonce}, now));
    const dgram::RdHeader header{.kind = dgram::RdKind::acknowledgement,
                                 .flags = flags,
                                 .window = 100,
                                 .epoch = ++accepted_epoch,
                                 .peer_epoch = handshake.epoch(),
                                 .peer_incarnation = own_incarnation(from)};
    REQUIRE(handshake.check(header, incarnation, own_incarnation(from)) ==
            dgram::Handshake::Verdict::accepted);
    associations.accepted(from, now);
    from.sender().acknowledged(static_cast<uint32_t>(from.sender().window().next() - 1), 100,
                               nullptr, now);
  }
  RdDelivery::Outcome deliver(RdPeer& from, const rdmap::DatagramSegment& segment) {
    return delivery.deliver(from, dgram::RdKind::data, rdmap::flags_of(segment), body_of(segment),
                            now);
  }
  /// A datagram comes early, so that it is kept.
  void come_early(RdPeer& from, std::string_view text) {
    dgram::Receiver& receiver = from.receiver();
    const auto sequence = static_cast<uint32_t>(receiver.next() + 1);
    REQUIRE(receiver.arrived(sequence) == dgram::Receiver::Arrival::early);
    dgram::BufferedDatagram* const kept =
        buffer.keep(dgram::RdKind::data, 0, bytes_of(text), from.host.buffered);
    REQUIRE(kept != nullptr);
    REQUIRE(receiver.keep(receiver.number(sequence), kept, buffer, from.host.buffered));
  }

  // --- What is posted.

  SendWorkRequest request(const RdPeer& to, size_t length, WrOpcode opcode = WrOpcode::send) {
    return {.sges = sge(region, 0, length), .destination = to.address(), .opcode = opcode};
  }

  dgram::Identity identity{SipKey{3, 4}};
  dgram::ReorderBuffer buffer{size_t{1} << 20};
  uint32_t accepted_epoch = 1000;
  RdAssociations associations{peers.table, identity, requests, responder,
                              delivery,    buffer,   logged,   kPeerTimeout};
};

}  // namespace diwarp::rnic::parts
