// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/ud_messenger.h"

#include <chrono>
#include <thread>
#include <utility>

namespace diwarp::compat {
namespace {

constexpr uint32_t kSends = 256;
constexpr uint64_t kSendMark = ~uint64_t{0};  // wr_id of sends; that of a receive is its slot

QueuePairInit init_of(const CompletionQueue& queue, uint32_t receives,
                      std::optional<UdpPort>& port) {
  QueuePairInit made;
  made.type = QpType::ud;
  made.send_cq = queue;
  made.recv_cq = queue;
  made.capacity = {.max_send_wr = kSends,
                   .max_recv_wr = receives,
                   .max_send_sge = 1,
                   .max_recv_sge = 1,
                   .max_inline_data = kUdRequestBytes};
  made.datagram.q_key = kUdServiceKey;
  made.datagram.connect_after = 0;
  if (port) made.datagram.descriptor = port->release();
  return made;
}

}  // namespace

UdMessenger::UdMessenger(const diwarp::Device& device, const diwarp::CompletionChannel& channel,
                         uint64_t context, std::optional<UdpPort> port)
    : memory_(kSlots * kSlotBytes),
      domain_(device),
      region_(domain_, memory_.data(), memory_.size(), Access::local_write),
      queue_(device, kSends + kSlots, channel, context),
      queue_pair_(domain_, init_of(queue_, kSlots, port)) {
  for (size_t slot = 0; slot < kSlots; ++slot) post_slot(slot);
  queue_.arm();
}

void UdMessenger::post_slot(size_t slot) {
  const Sge sge{bytes_of(slot).data(), kSlotBytes, region_.lkey()};
  queue_pair_.post_recv({.wr_id = slot, .sges = SgeList(&sge, 1)});
}

bool UdMessenger::send(const Address& destination, std::span<const std::byte> message) {
  const Sge sge{const_cast<std::byte*>(message.data()), static_cast<uint32_t>(message.size()), 0};
  return !queue_pair_.post_send({.wr_id = kSendMark,
                                 .sges = SgeList(&sge, 1),
                                 .flags = SendFlags::signaled | SendFlags::inline_data,
                                 .destination = destination,
                                 .q_key = kUdServiceKey});
}

void UdMessenger::receive(const Handler& handler) {
  do {
    queue_.arm();
  } while (take_some(handler));
}

bool UdMessenger::take_some(const Handler& handler) {
  std::array<WorkCompletion, 16> batch;
  const size_t found = queue_.poll(batch);
  for (const WorkCompletion& completion : std::span(batch).first(found)) {
    if (completion.wr_id == kSendMark) continue;
    const auto slot = static_cast<size_t>(completion.wr_id);
    if (completion.status == WcStatus::success)
      handler(completion.source, bytes_of(slot).first(completion.byte_count));
    post_slot(slot);
  }
  return found != 0;
}

void UdMessenger::finish_sends() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (queue_pair_.query().posted_sends != 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

std::optional<Address> UdMessenger::take_unreachable() {
  while (const auto error = queue_pair_.poll_error())
    if (error->kind == DatagramErrorKind::port_unreachable) return error->peer;
  return std::nullopt;
}

}  // namespace diwarp::compat
