// SPDX-License-Identifier: Apache-2.0
#include "common/endpoint.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "common/failure.h"
#include "common/hints.h"

namespace diwarp::tools {
namespace {

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
  datagram.record_completion = shape.completion;
  // A tool has one peer: it may open as many messages as there are slots.
  datagram.max_open_messages = std::max(datagram.max_open_messages, shape.receive_slots);
  datagram.max_open_per_source = datagram.max_open_messages;
  datagram.max_open_records = std::max(datagram.max_open_records, 2 * shape.receive_slots);
  datagram.max_open_records_per_source = datagram.max_open_records;
  datagram.record_timeout = kRecordTimeout;
  init.reliable.congestion_control = shape.congestion;
  init.reliable.transmission_log = shape.transmissions;
  return init;
}

[[noreturn]] void fail_link(QpType transport, const Address& peer) {
  const char* what = is_datagram(transport) ? "The exchange with " : "The RC connection to ";
  throw LinkDown(what + peer.to_string() + " broke.");
}

/// `code` is what posting a message to `peer` answered.
void require(std::error_code code, QpType transport, const Address& peer) {
  if (!code) return;
  // A hardware device whose connection just died, and which has not told yet.
  if (transport == QpType::rc && code == Errc::invalid_state) fail_link(transport, peer);
  throw Failure("A message to " + peer.to_string() + " could not be posted: " + code.message());
}

}  // namespace

bool is_receive(const WorkCompletion& completion) {
  return completion.opcode == WcOpcode::recv || completion.opcode == WcOpcode::recv_immediate ||
         completion.opcode == WcOpcode::recv_write_record;
}

bool is_whole(const WorkCompletion& receive) {
  return receive.opcode != WcOpcode::recv_write_record || receive.validity.complete();
}

Endpoint::Endpoint(Device& device, const EndpointShape& shape) : Endpoint(device, shape, nullptr) {}

Endpoint::Endpoint(Device& device, const EndpointShape& shape, CompletionQueue& cq)
    : Endpoint(device, shape, &cq) {}

Endpoint::Endpoint(Device& device, const EndpointShape& shape, CompletionQueue* cq)
    : device_(device),
      shape_(shape),
      pd_(device),
      memory_(pd_, shape),
      cq_(cq != nullptr ? cq : &own_cq_.emplace(device, shape.completions())),
      qp_(pd_, queue_pair_init(shape, *cq_)) {
  prepared_.reserve(std::max(shape.send_slots, 1u));
  prepared_sges_.reserve(std::max(shape.send_slots, 1u));
  const bool carries = !shape.asks() && shape.operation != Operation::send_imm;
  if (carries && shape.send_size <= qp_.query().capacity.max_inline_data) {
    send_flags_ = SendFlags::inline_data;
  }
  if (shape.group) qp_.join(shape.group->address);
  memory_.grant(pd_, shape);
}

Endpoint::~Endpoint() {
  if (is_datagram(shape_.transport)) note_errors(qp_);
}

void Endpoint::set_group(const Address& group, std::vector<Address> members) {
  peer_ = group;
  members_ = std::move(members);
}

std::optional<size_t> Endpoint::member_of(const WorkCompletion& receive) const {
  if (!is_datagram(shape_.transport)) return 0;
  const auto found = std::ranges::find(members_, receive.source);
  if (found == members_.end()) return std::nullopt;
  return static_cast<size_t>(found - members_.begin());
}

std::span<const std::byte> Endpoint::message(const WorkCompletion& receive) {
  if (receive.opcode == WcOpcode::recv_write_record) return memory_.recorded(receive);
  const std::span<std::byte> slot = receive_slot(static_cast<uint32_t>(receive.wr_id));
  if (receive.opcode == WcOpcode::recv) return slot.first(receive.byte_count);
  // Immediate data come in the completion; here they lie where other messages do.
  std::memcpy(slot.data(), &receive.immediate, std::min(slot.size(), sizeof receive.immediate));
  return slot;
}

/// The slots of both ends are of the same size.
RemoteMemory Endpoint::remote_slot(uint32_t slot) const {
  return {.stag = peer_memory_.stag,
          .offset = peer_memory_.offset +
                    slot * (shape_.asks() ? memory_.receive_stride() : memory_.send_stride())};
}

void Endpoint::post_receives() {
  if (!shape_.takes_receives()) return;
  for (uint32_t slot = 0; slot < shape_.receive_slots; ++slot) post_receive(slot);
}

void Endpoint::post_receive(uint32_t slot) {
  const Sge sge = memory_.sge_of(receive_slot(slot));
  require(qp_.post_recv({.wr_id = slot, .sges = {&sge, 1}}), shape_.transport, peer_);
}

void Endpoint::post_receive_again(uint64_t wr_id) {
  if (shape_.takes_receives()) post_receive(static_cast<uint32_t>(wr_id));
}

void Endpoint::prepare_send(uint32_t slot, bool signaled, uint64_t number) {
  // Where what is asked for goes, or what is sent comes from.
  const std::span<std::byte> memory = shape_.asks() ? receive_slot(slot) : send_slot(slot);
  const Sge& sge = prepared_sges_.emplace_back(memory_.sge_of(memory));
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
  } else if (shape_.needs_peer_memory()) {
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
  require(code, shape_.transport, peer_);
}

void Endpoint::check_link() const {
  if (shape_.transport == QpType::rc && qp_.state() == QpState::error)
    fail_link(shape_.transport, peer_);
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
      fail_link(shape_.transport, peer_);
    case WcStatus::local_qp_operation_error:
      if (!is_datagram(shape_.transport)) break;  // a device's own code
      throw Failure("The network refused a message to " + peer_.to_string() + ": " +
                    std::strerror(static_cast<int>(completion.vendor_error)) + ".");
    default:
      break;
  }
  throw Failure("A message failed: " + std::string(to_string(completion.status)) + ".");
}

}  // namespace diwarp::tools
