// SPDX-License-Identifier: Apache-2.0
#include "common/operation.h"

#include <algorithm>
#include <array>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);

/// In the order of the enumeration.
constexpr std::array<OperationFacts, 5> kOperations = {{
    {.operation = Operation::send,
     .name = "send",
     .explanation = "Sends, each taken by a posted receive",
     .request = WrOpcode::send,
     .manner = Manner::messages,
     .access = Access::none,
     .min_size = 0,
     .fixed_size = 0},
    {.operation = Operation::write,
     .name = "write",
     .explanation = "RDMA Writes: the target posts no receive and sees each arrive by spinning on "
                    "its last byte in memory",
     .request = WrOpcode::rdma_write,
     .manner = Manner::writes,
     .access = Access::remote_write,
     .min_size = 1,
     .fixed_size = 0},
    {.operation = Operation::read,
     .name = "read",
     .explanation = "RDMA Reads of the server's memory; the server only makes progress",
     .request = WrOpcode::rdma_read,
     .manner = Manner::requests,
     .access = Access::remote_read,
     .min_size = 0,
     .fixed_size = 0},
    {.operation = Operation::atomic,
     .name = "atomic",
     .explanation = "FetchAdds on 8 bytes of the server's memory; the server only makes progress",
     .request = WrOpcode::fetch_add,
     .manner = Manner::requests,
     .access = Access::remote_atomic,
     .min_size = kWord,
     .fixed_size = kWord},
    {.operation = Operation::send_imm,
     .name = "send-imm",
     .explanation = "Immediate Data messages, which are 8 bytes (RFC 7306); iWARP has no Send with "
                    "immediate",
     .request = WrOpcode::immediate,
     .manner = Manner::messages,
     .access = Access::none,
     .min_size = kWord,
     .fixed_size = kWord},
}};

std::string option(Operation operation) { return "--op " + std::string(facts_of(operation).name); }

}  // namespace

const OperationFacts& facts_of(Operation operation) {
  return kOperations[static_cast<size_t>(operation)];
}

Operation parse_operation(std::string_view name) {
  const auto found = std::ranges::find(kOperations, name, &OperationFacts::name);
  if (found != kOperations.end()) return found->operation;
  throw Failure("There is no operation \"" + std::string(name) + "\": choose " + operation_names() +
                ".");
}

void check_transport(Operation operation, QpType transport) {
  if (operation == Operation::send || transport == QpType::rc) return;
  throw Failure(option(operation) +
                " needs a reliable connection: give --transport rc, too (over UD there is send).");
}

void check_size(Operation operation, uint64_t size) {
  const OperationFacts& facts = facts_of(operation);
  if (facts.fixed_size != 0 && size != facts.fixed_size) {
    throw Failure(option(operation) + " is always of " + std::to_string(facts.fixed_size) +
                  " bytes: leave --size out.");
  }
  if (size < facts.min_size) {
    throw Failure(option(operation) +
                  " needs a --size of 1 byte or more: the last byte tells that "
                  "the message came.");
  }
}

std::string operation_names() {
  std::string names;
  for (const OperationFacts& facts : kOperations) {
    if (facts.operation == kOperations.back().operation) {
      names += " or ";
    } else if (!names.empty()) {
      names += ", ";
    }
    names += facts.name;
  }
  return names;
}

std::string operations_help() {
  std::string help = "Operations (all but send need --transport rc):\n";
  for (const OperationFacts& facts : kOperations) {
    help += "  " + std::string(facts.name) + std::string(10 - facts.name.size(), ' ') +
            std::string(facts.explanation) + "\n";
  }
  return help;
}

}  // namespace diwarp::tools
