// SPDX-License-Identifier: Apache-2.0
#include "llp/uring/uring_udp_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "llp/udp/udp_open.h"
#include "llp/uring/uring_input.h"

namespace diwarp::llp {
namespace {

class RingPath final : public SendPath {
 public:
  explicit RingPath(UringInput& input) : input_(input) {}
  ssize_t send(std::span<mmsghdr> messages) override { return input_.send(messages); }

 private:
  UringInput& input_;
};

}  // namespace

std::unique_ptr<UringUdpLink> UringUdpLink::open(std::shared_ptr<UringQueue> queue,
                                                 const Address& local, const UdpOptions& options) {
  return std::unique_ptr<UringUdpLink>(new UringUdpLink(
      std::move(queue), bound_udp_socket(local, options.share_port), options, false));
}

std::unique_ptr<UringUdpLink> UringUdpLink::adopt(std::shared_ptr<UringQueue> queue,
                                                  int bound_descriptor, const UdpOptions& options) {
  return std::unique_ptr<UringUdpLink>(new UringUdpLink(
      std::move(queue), adoptable_udp_socket(bound_descriptor, options), options, false));
}

UringUdpLink::UringUdpLink(std::shared_ptr<UringQueue> queue, UniqueFd fd,
                           const UdpOptions& options, bool group)
    : UdpLink(std::move(fd), options, group),
      input_(std::make_unique<UringInput>(std::move(queue), descriptor(),
                                          UringInput::Kind::datagrams)) {}

UringUdpLink::~UringUdpLink() = default;

std::unique_ptr<DatagramLink> UringUdpLink::on_group(UniqueFd fd) {
  return std::unique_ptr<DatagramLink>(
      new UringUdpLink(input_->queue(), std::move(fd), options(), true));
}

InputQueue* UringUdpLink::input_queue() const { return input_->queue().get(); }

void UringUdpLink::set_key(void* key) { input_->set_key(key); }

SendResult UringUdpLink::send(std::span<const OutgoingDatagram> burst) {
  RingPath ring(*input_);
  return sender().send(burst, ring);
}

/// The input that the ring brought, and when it brings nothing more, the rest in the socket.
size_t UringUdpLink::receive(ReceiveBatch& batch) {
  batch.clear();
  receiver().fit_offload(batch);
  const size_t slots = receiver().slots_wanted(batch);
  if (slots == 0) return 0;
  const size_t got = receive_pieces(batch);
  if (got != 0 || input_->brings_next()) return got;
  const size_t direct = receiver().receive_waiting(batch, slots);
  if (direct == 0) {
    collect_icmp();  // the request may have ended for that, and the next one must not, again
    input_->arm();
  } else {
    input_->announce_rest();
  }
  return direct;
}

size_t UringUdpLink::receive_pieces(ReceiveBatch& batch) {
  std::array<UringInput::Piece, UdpReceiver::kMessagesPerReceive> pieces;
  const size_t count = input_->take(std::span(pieces).first(receiver().slots_wanted(batch)));
  for (const UringInput::Piece& piece : std::span(pieces).first(count)) {
    msghdr header;
    const Bytes received = UringInput::unpack(piece, header);
    if (header.msg_name != nullptr) receiver().hand_up(batch, received, header);
    batch.add_buffer(input_->queue(), piece.buffer);
  }
  return batch.datagrams().size();
}

}  // namespace diwarp::llp
