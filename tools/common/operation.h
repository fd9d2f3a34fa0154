// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/attributes.h>
#include <diwarp/datagram_options.h>
#include <diwarp/reliable_options.h>
#include <diwarp/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace diwarp::tools {

/// The operations that the measuring tools can measure.
enum class Operation : uint8_t { send, write, read, atomic, send_imm, write_record };

/// How the two ends share the work.
enum class Manner : uint8_t {
  messages,  ///< the far end is told of each by a completion
  writes,    ///< the far end sees them arrive in its memory and posts no receive for them
  requests,  ///< the near end asks for something in the far end's memory; that end only
             ///< progresses
};

/// The properties of an operation that the tools must know; there is one table of them.
struct OperationInfo {
  Operation operation;
  std::string_view name;
  std::string_view explanation;
  WrOpcode request;
  Manner manner;
  Access access;          ///< what the peer must grant in its memory
  Capability needs;       ///< of the devices of both ends
  bool over_connections;  ///< rc
  bool over_datagrams;    ///< ud and rd
  uint64_t min_size;      ///< bytes
  uint64_t fixed_size;    ///< the only size there is; 0: any
};

const OperationInfo& info_of(Operation operation);

/// Whether messages go as datagrams, without a connection.
constexpr bool is_datagram(QpType transport) { return transport != QpType::rc; }
/// Whether what is sent arrives, once and in order.
constexpr bool is_reliable(QpType transport) { return transport != QpType::ud; }

/// Throw Failure with a message if there is no such transport or operation, or not over the
/// transport, or not of the size.
QpType parse_transport(std::string_view name);
Operation parse_operation(std::string_view name);
void check_transport(Operation operation, QpType transport);
void check_size(Operation operation, uint64_t size);

/// How long the datagrams are.
struct SegmentChoice {
  bool jumbo = false;  ///< IP may fragment them
  uint32_t size = 0;   ///< bytes of UDP payload; 0: what the path, or (jumbo) IP carries
};

/// "complete", "last-segment" or "per-segment": when the target of a Write-Record is told. Throws
/// Failure with a message on anything else.
RecordCompletion parse_completion(std::string_view name);
const char* to_string(RecordCompletion completion);
std::string completion_names(const char* separator);

/// "bbr" or "cubic". Throws Failure with a message on anything else.
CongestionControl parse_congestion(std::string_view name);
const char* to_string(CongestionControl control);

/// "mtu", "jumbo" or a number of bytes. Throws Failure with a message on anything else.
SegmentChoice parse_segment(const std::string& text);

/// "send, write, read, atomic, send-imm, write-record".
std::string operation_names(const char* separator);
/// A line for each operation, for --help.
std::string operations_help();

}  // namespace diwarp::tools
