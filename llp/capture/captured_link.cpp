// SPDX-License-Identifier: Apache-2.0
#include "llp/capture/capture.h"
#include "llp/forwarding.h"

namespace diwarp::llp {
namespace {

class CapturedLink final : public ForwardingDatagramLink {
 public:
  /// `receives_at`: where its datagrams are addressed to.
  CapturedLink(std::unique_ptr<DatagramLink> inner, Capture& capture, const Address& receives_at)
      : ForwardingDatagramLink(std::move(inner)), capture_(capture), receives_at_(receives_at) {}

  SendResult send(std::span<const OutgoingDatagram> burst) override {
    const WallTime at = std::chrono::system_clock::now();
    const SendResult result = inner().send(burst);
    for (const OutgoingDatagram& datagram : burst.first(result.sent))
      capture_.add(
          at, Direction::outbound,
          {.from = own_towards(datagram.to), .to = datagram.to, .pieces = datagram.pieces});
    return result;
  }
  size_t receive(ReceiveBatch& batch) override {
    const size_t count = inner().receive(batch);
    if (count == 0) return 0;
    const WallTime at = std::chrono::system_clock::now();
    for (const IncomingDatagram& datagram : batch.datagrams()) {
      const ConstBytes bytes = datagram.bytes;
      capture_.add(at, Direction::inbound,
                   {.from = datagram.from,
                    .to = own_towards(datagram.from),
                    .pieces = std::span(&bytes, 1)});
    }
    return count;
  }
  std::unique_ptr<DatagramLink> open_group(const Address& group,
                                           std::string_view interface) override {
    return std::make_unique<CapturedLink>(inner().open_group(group, interface), capture_,
                                          group.with_port(inner().local_address().port()));
  }
  InputQueue* input_queue() const override { return inner().input_queue(); }
  void set_key(void* key) override { inner().set_key(key); }

 private:
  /// A link at all addresses speaks to peers of both families.
  Address own_towards(const Address& peer) const {
    const bool same = peer.family() == receives_at_.family();
    return same ? receives_at_ : Address::any(peer.family(), receives_at_.port());
  }

  Capture& capture_;
  const Address receives_at_;
};

}  // namespace

std::unique_ptr<DatagramLink> capture_link(std::unique_ptr<DatagramLink> inner, Capture& capture) {
  const Address local = inner->local_address();
  return std::make_unique<CapturedLink>(std::move(inner), capture, local);
}

}  // namespace diwarp::llp
