// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/message_log.h"

#include <string>

#include "ddp/scatter.h"
#include "rnic/context/counter_log.h"

namespace diwarp::rnic::message_log {

namespace {

constexpr LogLevel kLevel = LogLevel::trace;

/// "send of 64 bytes".
std::string message_of(std::string_view operation, uint64_t bytes) {
  return std::string(operation) + " of " + std::to_string(bytes) + " bytes";
}

std::string request(uint64_t wr_id) { return ", wr_id " + std::to_string(wr_id); }

/// Requests of connections name no destination.
std::string destination_of(const Address& address) {
  return address.port() == 0 ? std::string() : " to " + address.to_string();
}

std::string source_of(const Address& address) {
  return address.port() == 0 ? std::string() : " from " + address.to_string();
}

}  // namespace

void posted(const log::Subject& queue_pair, std::span<const SendWorkRequest> requests) noexcept {
  for (const SendWorkRequest& one : requests)
    log::tell(kLevel, queue_pair, [&] {
      return "posted " + message_of(to_string(one.opcode), ddp::total_length(one.sges)) +
             destination_of(one.destination) + request(one.wr_id);
    });
}

void posted(const log::Subject& queue_pair, std::span<const ReceiveWorkRequest> requests) noexcept {
  for (const ReceiveWorkRequest& one : requests)
    log::tell(kLevel, queue_pair, [&] {
      return "posted " + message_of("receive", ddp::total_length(one.sges)) + request(one.wr_id);
    });
}

void sent(const LoggedCounters* queue_pair, const SendEntry& entry) noexcept {
  log::tell(kLevel, queue_pair == nullptr ? log::Subject() : queue_pair->subject(), [&] {
    const bool good = entry.status == WcStatus::success;
    const bool answered = rdmap::info_of(entry.opcode).responded;
    std::string text = good ? (answered ? "answered " : "sent ") : "failed ";
    text += message_of(to_string(entry.opcode), entry.length) + destination_of(entry.destination) +
            request(entry.wr_id);
    return good ? text : text.append(": ").append(to_string(entry.status));
  });
}

void received(const log::Subject& queue_pair, rdmap::Opcode opcode, uint64_t bytes,
              const Address* peer) noexcept {
  log::tell(kLevel, queue_pair, [&] {
    const rdmap::OpcodeInfo& info = rdmap::info_of(opcode);
    const bool whole = !info.tagged || info.type == rdmap::MessageType::write_record;
    std::string text = "received ";
    text += whole ? message_of(info.name, bytes)
                  : "the last " + std::to_string(bytes) + " bytes of " + std::string(info.name);
    return peer != nullptr ? text + source_of(*peer) : text;
  });
}

void completed(std::string_view device, const WorkCompletion& completion) noexcept {
  log::tell(kLevel, {device, completion.qp_number}, [&] {
    return "completed " + message_of(to_string(completion.opcode), completion.byte_count) +
           source_of(completion.source) + request(completion.wr_id) + ": " +
           std::string(to_string(completion.status));
  });
}

}  // namespace diwarp::rnic::message_log
