// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace diwarp::tools {

/// What the measuring tools can measure. All but send need a reliable connection.
enum class Operation : uint8_t { send, write, read, atomic, send_imm };

/// How the two ends share the work.
enum class Manner : uint8_t {
  messages,  ///< a receive of the far end takes each
  writes,    ///< the far end sees them arrive in its memory and posts no receive for them
  requests,  ///< the near end asks for something in the far end's memory; that end only progresses
};

/// What the tools must know of an operation; there is one table of them.
struct OperationFacts {
  Operation operation;
  std::string_view name;
  std::string_view explanation;
  WrOpcode request;
  Manner manner;
  Access access;        ///< what the peer must grant in its memory
  uint64_t min_size;    ///< bytes
  uint64_t fixed_size;  ///< the only size there is; 0: any
};

const OperationFacts& facts_of(Operation operation);

/// Throw Failure with a sentence if there is no such operation, or not over this transport.
Operation parse_operation(std::string_view name);
void check_transport(Operation operation, QpType transport);
void check_size(Operation operation, uint64_t size);

/// "send, write, read, atomic or send-imm".
std::string operation_names();
/// A line for each operation, for --help.
std::string operations_help();

}  // namespace diwarp::tools
