// SPDX-License-Identifier: Apache-2.0
#include "common/endpoint.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

/// A cache line: no slot shares one with another, and atomics find their 8 bytes aligned.
constexpr size_t kAlignment = 64;

size_t stride_of(size_t size) {
  // An empty slot still has an address.
  return (std::max(size, size_t{1}) + kAlignment - 1) / kAlignment * kAlignment;
}

QueuePairInit queue_pair_init(const EndpointShape& shape, const CompletionQueue& cq) {
  QueuePairInit init;
  init.type = shape.transport;
  init.send_cq = cq;
  init.recv_cq = cq;
  // That a request which nobody awaits is done may be noticed a little later.
  init.capacity.max_send_wr = std::max(shape.send_slots, 16u);
  init.capacity.max_recv_wr = shape.receive_slots;
  DatagramOptions& datagram = init.datagram;
  if (shape.group) datagram.port = shape.group->address.port();
  datagram.max_rate = shape.max_rate;
  datagram.segment = shape.segment.size;
  datagram.jumbo = shape.segment.jumbo;
  // A tool has one peer: it may open as many messages as there are slots.
  datagram.max_open_messages = std::max(datagram.max_open_messages, shape.receive_slots);
  datagram.max_open_per_source = datagram.max_open_messages;
  datagram.max_open_records = std::max(datagram.max_open_records, 2 * shape.receive_slots);
  datagram.max_open_records_per_source = datagram.max_open_records;
  // Well before either end gives up what is on the way (patience()).
  datagram.record_timeout = std::chrono::milliseconds(50);
  return init;
}

}  // namespace

bool is_receive(const WorkCompletion& completion) {
  return completion.opcode == WcOpcode::recv || completion.opcode == WcOpcode::recv_immediate ||
         completion.opcode == WcOpcode::recv_write_record;
}

bool is_whole(const WorkCompletion& receive) {
  return receive.opcode != WcOpcode::recv_write_record || receive.validity.complete();
}

Endpoint::Endpoint(Device& device, const EndpointShape& shape)
    : device_(device),
      shape_(shape),
      send_stride_(stride_of(shape.send_size)),
      receive_stride_(stride_of(shape.receive_size)),
      memory_(send_stride_ * shape.send_slots + receive_stride_ * shape.receive_slots + kAlignment),
      pd_(device),
      region_(pd_, memory_),
      cq_(device, shape.send_slots + shape.receive_slots),
      qp_(pd_, queue_pair_init(shape, cq_)) {
  prepared_.reserve(std::max(shape.send_slots, 1u));
  prepared_sges_.reserve(std::max(shape.send_slots, 1u));
  const bool carries = !asks() && shape.operation != Operation::send_imm;
  if (carries && shape.send_size <= qp_.query().capacity.max_inline_data) {
    send_flags_ = SendFlags::inline_data;
  }
  const Access access = Access::local_write | shape.grants;
  if (shape.group) {
    qp_.join(shape.group->address);
    if (shape.grants != Access::none)
      granted_ = MemoryRegion::with_stag(pd_, granted_slots(), shape.group->stag, 0, access);
  } else if (shape.grants != Access::none) {
    granted_.emplace(pd_, granted_slots(), access);
  }
}

void Endpoint::set_group(const Address& group, std::vector<Address> members) {
  peer_ = group;
  members_ = std::move(members);
}

std::span<std::byte> Endpoint::granted_slots() {
  const size_t sends = send_stride_ * shape_.send_slots;
  if (shape_.grants != Access::remote_write) return std::span(memory_).first(sends);
  return std::span(memory_).subspan(sends, receive_stride_ * shape_.receive_slots);
}

std::optional<RemoteMemory> Endpoint::granted_memory() const {
  if (!granted_) return std::nullopt;
  return RemoteMemory{.stag = granted_->rkey(), .offset = granted_->base()};
}

bool Endpoint::needs_peer_memory() const {
  return info_of(shape_.operation).access != Access::none;
}

std::span<std::byte> Endpoint::send_slot(uint32_t slot) {
  return std::span(memory_).subspan(slot * send_stride_, shape_.send_size);
}

std::span<std::byte> Endpoint::receive_slot(uint32_t slot) {
  const size_t receives = send_stride_ * shape_.send_slots;
  return std::span(memory_).subspan(receives + slot * receive_stride_, shape_.receive_size);
}

std::optional<size_t> Endpoint::member_of(const WorkCompletion& receive) const {
  if (!is_datagram(shape_.transport)) return 0;
  const auto found = std::ranges::find(members_, receive.source);
  if (found == members_.end()) return std::nullopt;
  return static_cast<size_t>(found - members_.begin());
}

std::span<const std::byte> Endpoint::message(const WorkCompletion& receive) {
  if (receive.opcode == WcOpcode::recv_write_record) return recorded(receive);
  const std::span<std::byte> slot = receive_slot(static_cast<uint32_t>(receive.wr_id));
  if (receive.opcode == WcOpcode::recv) return slot.first(receive.byte_count);
  // Immediate data come in the completion; here they lie where other messages do.
  std::memcpy(slot.data(), &receive.immediate, std::min(slot.size(), sizeof receive.immediate));
  return slot;
}

/// The slot that the record was written into, as far as it describes it.
std::span<std::byte> Endpoint::recorded(const WorkCompletion& record) {
  if (!granted_ || record.stag != granted_->rkey()) return {};
  const uint64_t offset = record.tagged_offset - granted_->base();
  const uint64_t length = record.validity.length();
  if (offset % receive_stride_ != 0 || length > shape_.receive_size) return {};
  return receive_slot(static_cast<uint32_t>(offset / receive_stride_)).first(length);
}

Sge Endpoint::sge_of(std::span<std::byte> slot) const {
  return {slot.data(), static_cast<uint32_t>(slot.size()), region_.lkey()};
}

/// The memory on this side: where what is asked for goes, or what is sent comes from.
Sge Endpoint::local_sge(uint32_t slot) {
  return sge_of(asks() ? receive_slot(slot) : send_slot(slot));
}

/// The slots of both ends are of the same size.
RemoteMemory Endpoint::remote_slot(uint32_t slot) const {
  return {.stag = peer_memory_.stag,
          .offset = peer_memory_.offset + slot * (asks() ? receive_stride_ : send_stride_)};
}

void Endpoint::post_receives() {
  if (!takes_receives()) return;
  for (uint32_t slot = 0; slot < shape_.receive_slots; ++slot) post_receive(slot);
}

void Endpoint::post_receive(uint32_t slot) {
  const Sge sge = sge_of(receive_slot(slot));
  require(qp_.post_recv({.wr_id = slot, .sges = {&sge, 1}}));
}

void Endpoint::post_receive_again(uint64_t wr_id) {
  if (takes_receives()) post_receive(static_cast<uint32_t>(wr_id));
}

void Endpoint::prepare_send(uint32_t slot, bool signaled, uint64_t number) {
  const Sge& sge = prepared_sges_.emplace_back(local_sge(slot));
  SendWorkRequest request{.wr_id = slot,
                          .sges = {&sge, sge.length == 0 ? 0u : 1u},
                          .flags = signaled ? send_flags_ | SendFlags::signaled : send_flags_,
                          .destination = peer_,
                          .opcode = info_of(shape_.operation).request};
  if (shape_.operation == Operation::send_imm) {
    request.sges = {};
    uint64_t data = 0;
    std::memcpy(&data, sge.address, sizeof data);
    request.immediate = data;
  } else if (needs_peer_memory()) {
    request.remote = remote_slot(slot);
    request.atomic.operand = 1;
  }
  if (shape_.operation == Operation::write_record) request.immediate = number;
  prepared_.push_back(request);
}

void Endpoint::post_prepared() {
  size_t posted = 0;
  const std::error_code code = qp_.post_sends(prepared_, posted);
  prepared_.clear();
  prepared_sges_.clear();
  require(code);
}

void Endpoint::fail_link() const {
  const char* what = is_datagram(shape_.transport) ? "The exchange with " : "The RC connection to ";
  throw LinkDown(what + peer_.to_string() + " broke.");
}

void Endpoint::require(std::error_code code) const {
  if (!code) return;
  // A connection that just died leaves its queue pair in the error state.
  if (shape_.transport == QpType::rc && code == Errc::invalid_state) fail_link();
  throw Failure("A message to " + peer_.to_string() + " could not be posted: " + code.message());
}

void Endpoint::check_link() const {
  if (shape_.transport == QpType::rc && qp_.state() == QpState::error) fail_link();
}

void Endpoint::check(const WorkCompletion& completion) const {
  switch (completion.status) {
    case WcStatus::success:
      return;
    case WcStatus::timeout:
      if (completion.opcode == WcOpcode::rdma_read) return;
      throw Failure("A message to " + peer_.to_string() + " took too long.");
    case WcStatus::retry_exceeded:
      throw Failure(peer_.to_string() + " did not acknowledge a message.");
    case WcStatus::peer_restarted:
      throw Failure("Another program than before answers at " + peer_.to_string() + ".");
    case WcStatus::wr_flush_error:
    case WcStatus::general_error:
      fail_link();
    case WcStatus::local_qp_operation_error:
      throw Failure("The network refused a message to " + peer_.to_string() + ": " +
                    std::strerror(static_cast<int>(completion.vendor_error)) + ".");
    default:
      throw Failure("A message failed: " + std::string(to_string(completion.status)) + ".");
  }
}

}  // namespace diwarp::tools
