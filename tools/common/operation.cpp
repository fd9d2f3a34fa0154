// SPDX-License-Identifier: Apache-2.0
#include "common/operation.h"

#include <algorithm>
#include <array>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);

/// In the order of the enumeration.
constexpr std::array<OperationInfo, 6> kOperations = {{
    {.operation = Operation::send,
     .name = "send",
     .explanation = "Sends, each taken by a posted receive",
     .request = WrOpcode::send,
     .manner = Manner::messages,
     .access = Access::none,
     .needs = Capability::none,
     .over_connections = true,
     .over_datagrams = true,
     .min_size = 0,
     .fixed_size = 0},
    {.operation = Operation::write,
     .name = "write",
     .explanation = "RDMA Writes: the target posts no receive and sees each arrive by spinning on "
                    "its last byte in memory",
     .request = WrOpcode::rdma_write,
     .manner = Manner::writes,
     .access = Access::remote_write,
     .needs = Capability::none,
     .over_connections = true,
     .over_datagrams = false,
     .min_size = 1,
     .fixed_size = 0},
    {.operation = Operation::read,
     .name = "read",
     .explanation = "RDMA Reads of the server's memory; the server only makes progress",
     .request = WrOpcode::rdma_read,
     .manner = Manner::requests,
     .access = Access::remote_read,
     .needs = Capability::none,
     .over_connections = true,
     .over_datagrams = true,
     .min_size = 0,
     .fixed_size = 0},
    {.operation = Operation::atomic,
     .name = "atomic",
     .explanation = "FetchAdds on 8 bytes of the server's memory; the server only makes progress",
     .request = WrOpcode::fetch_add,
     .manner = Manner::requests,
     .access = Access::remote_atomic,
     .needs = Capability::atomics,
     .over_connections = true,
     .over_datagrams = false,
     .min_size = kWord,
     .fixed_size = kWord},
    {.operation = Operation::send_imm,
     .name = "send-imm",
     .explanation = "Immediate Data messages, which are 8 bytes (RFC 7306); iWARP has no Send with "
                    "immediate",
     .request = WrOpcode::immediate,
     .manner = Manner::messages,
     .access = Access::none,
     .needs = Capability::immediate_data,
     .over_connections = true,
     .over_datagrams = false,
     .min_size = kWord,
     .fixed_size = kWord},
    {.operation = Operation::write_record,
     .name = "write-record",
     .explanation = "Write-Records: the target posts no receive, and its completion tells which "
                    "bytes are valid",
     .request = WrOpcode::write_record,
     .manner = Manner::messages,
     .access = Access::remote_write,
     .needs = Capability::none,
     .over_connections = false,
     .over_datagrams = true,
     .min_size = 0,
     .fixed_size = 0},
}};

constexpr std::array kCompletions = {RecordCompletion::complete, RecordCompletion::last_segment,
                                     RecordCompletion::per_segment};

std::string option(Operation operation) { return "--op " + std::string(info_of(operation).name); }

}  // namespace

const OperationInfo& info_of(Operation operation) {
  return kOperations[static_cast<size_t>(operation)];
}

Operation parse_operation(std::string_view name) {
  const auto found = std::ranges::find(kOperations, name, &OperationInfo::name);
  if (found != kOperations.end()) return found->operation;
  throw Failure("There is no operation \"" + std::string(name) + "\": choose one of " +
                operation_names(", ") + ".");
}

QpType parse_transport(std::string_view name) {
  for (const QpType transport : {QpType::ud, QpType::rc, QpType::rd}) {
    if (name == to_string(transport)) return transport;
  }
  throw Failure("There is no transport \"" + std::string(name) + "\": choose ud, rc or rd.");
}

SegmentChoice parse_segment(const std::string& text) {
  constexpr uint64_t kLeast = 128;
  constexpr uint64_t kMost = 65507;
  if (text == "mtu") return {};
  if (text == "jumbo") return {.jumbo = true};
  const bool number = !text.empty() && text.size() <= 5 &&
                      std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  const uint64_t size = number ? std::stoul(text) : 0;
  if (size < kLeast || size > kMost) {
    throw Failure("--segment needs mtu, jumbo, or a number of bytes from " +
                  std::to_string(kLeast) + " to " + std::to_string(kMost) + ", not \"" + text +
                  "\".");
  }
  return {.jumbo = true, .size = static_cast<uint32_t>(size)};
}

RecordCompletion parse_completion(std::string_view name) {
  for (const RecordCompletion completion : kCompletions)
    if (name == to_string(completion)) return completion;
  throw Failure("--completion is one of " + completion_names(", ") + ", not " + std::string(name) +
                ".");
}

CongestionControl parse_congestion(std::string_view name) {
  for (const CongestionControl control : {CongestionControl::bbr, CongestionControl::cubic})
    if (name == to_string(control)) return control;
  throw Failure("--congestion is bbr or cubic, not " + std::string(name) + ".");
}

const char* to_string(CongestionControl control) {
  return control == CongestionControl::bbr ? "bbr" : "cubic";
}

const char* to_string(RecordCompletion completion) {
  switch (completion) {
    case RecordCompletion::complete:
      return "complete";
    case RecordCompletion::last_segment:
      return "last-segment";
    case RecordCompletion::per_segment:
      return "per-segment";
  }
  return "";
}

std::string completion_names(const char* separator) {
  std::string names;
  for (const RecordCompletion completion : kCompletions)
    names.append(names.empty() ? "" : separator).append(to_string(completion));
  return names;
}

void check_transport(Operation operation, QpType transport) {
  const OperationInfo& info = info_of(operation);
  if (is_datagram(transport) ? info.over_datagrams : info.over_connections) return;
  throw Failure(option(operation) +
                (info.over_connections
                     ? " needs a reliable connection: give --transport rc, too (datagrams have "
                       "send, read and write-record)."
                     : " needs datagrams: give --transport ud or rd (over rc there is write)."));
}

void check_size(Operation operation, uint64_t size) {
  const OperationInfo& info = info_of(operation);
  if (info.fixed_size != 0 && size != info.fixed_size) {
    throw Failure(option(operation) + " is always of " + std::to_string(info.fixed_size) +
                  " bytes: leave --size out.");
  }
  if (size < info.min_size) {
    throw Failure(option(operation) +
                  " needs a --size of 1 byte or more: the last byte tells that "
                  "the message came.");
  }
}

std::string operation_names(const char* separator) {
  std::string names;
  for (const OperationInfo& info : kOperations)
    names.append(names.empty() ? "" : separator).append(info.name);
  return names;
}

std::string operations_help() {
  std::string help = "Operations, over any transport where it does not say:\n";
  for (const OperationInfo& info : kOperations) {
    const bool both = info.over_connections && info.over_datagrams;
    const char* where = both ? "" : info.over_connections ? " (rc)" : " (ud, rd)";
    help += "  " + std::string(info.name) + std::string(14 - info.name.size(), ' ') +
            std::string(info.explanation) + where + "\n";
  }
  return help;
}

}  // namespace diwarp::tools
