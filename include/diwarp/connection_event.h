// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

/// The kinds of event of the connection manager.
namespace diwarp {

enum class CmEventType : uint8_t {
  addr_resolved,    ///< resolve_addr(): the peer's address can be reached from the device
  addr_error,       ///< resolve_addr(): it cannot
  route_resolved,   ///< resolve_route()
  connect_request,  ///< a listening id: a peer asks; the event has a new id to answer with
  connect_error,    ///< the connection failed in another way than the two below
  unreachable,      ///< the peer did not answer in time
  rejected,         ///< the peer said no, or nobody listens there, or it closed without an answer
  established,      ///< messages may be sent
  disconnected,     ///< the connection has ended, for whatever reason
  device_removal,   ///< the device goes away: end what belongs to the id, and the id
};

constexpr std::string_view to_string(CmEventType type) {
  switch (type) {
    case CmEventType::addr_resolved:
      return "address resolved";
    case CmEventType::addr_error:
      return "address error";
    case CmEventType::route_resolved:
      return "route resolved";
    case CmEventType::connect_request:
      return "connect request";
    case CmEventType::connect_error:
      return "connect error";
    case CmEventType::unreachable:
      return "unreachable";
    case CmEventType::rejected:
      return "rejected";
    case CmEventType::established:
      return "established";
    case CmEventType::disconnected:
      return "disconnected";
    case CmEventType::device_removal:
      return "device removal";
  }
  return "unknown";
}

struct CmEventInfo {
  CmEventType type = CmEventType::disconnected;
  uint64_t id = 0;        ///< number of the id it is about; connect_request: of the new one
  uint64_t listener = 0;  ///< connect_request: number of the listening id
  uint64_t context = 0;   ///< of the id; connect_request: of the listening one
  /// The error, if there was one; disconnected: timed_out where the peer answers no more.
  std::error_code status = {};
  std::string message = {};  ///< the error, in words; empty: there was none
  /// Of the peer's request (connect_request), its reply (established, at the initiator) or its
  /// reject.
  std::vector<std::byte> private_data = {};
  /// connect_request: the most that accept() can have (RequestedDepths); established: the depths
  /// that were agreed.
  uint16_t ord = 0;
  uint16_t ird = 0;
};

}  // namespace diwarp
