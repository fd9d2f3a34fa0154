// SPDX-License-Identifier: Apache-2.0
#include "diwarp/attributes.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace diwarp {
namespace {

struct Words {
  TerminateCode code;
  std::string_view text;
};

// RFC 5040 section 4.8, RFC 5041 section 7.2, RFC 5044 section 8, RFC 6581 section 8.
constexpr Words kCodes[] = {
    {{0, 1, 0x00}, "invalid STag"},
    {{0, 1, 0x01}, "base or bounds violation"},
    {{0, 1, 0x02}, "access rights violation"},
    {{0, 1, 0x03}, "STag not associated with the stream"},
    {{0, 1, 0x04}, "tagged offset wraps"},
    {{0, 1, 0x09}, "STag cannot be invalidated"},
    {{0, 1, 0xff}, "unspecified"},
    {{0, 2, 0x05}, "invalid RDMAP version"},
    {{0, 2, 0x06}, "unexpected opcode"},
    {{0, 2, 0x07}, "catastrophic error of the stream"},
    {{0, 2, 0x08}, "catastrophic error of the device"},
    {{0, 2, 0x09}, "STag cannot be invalidated"},
    {{0, 2, 0xff}, "unspecified"},
    {{1, 1, 0x00}, "invalid STag"},
    {{1, 1, 0x01}, "base or bounds violation"},
    {{1, 1, 0x02}, "STag not associated with the stream"},
    {{1, 1, 0x03}, "tagged offset wraps"},
    {{1, 1, 0x04}, "invalid DDP version"},
    {{1, 2, 0x01}, "invalid queue number"},
    {{1, 2, 0x02}, "no buffer for this message"},
    {{1, 2, 0x03}, "message sequence number out of range"},
    {{1, 2, 0x04}, "invalid message offset"},
    {{1, 2, 0x05}, "message too long for its buffer"},
    {{1, 2, 0x06}, "invalid DDP version"},
    {{2, 0, 0x01}, "TCP connection lost"},
    {{2, 0, 0x02}, "CRC error"},
    {{2, 0, 0x03}, "marker and length do not match"},
    {{2, 0, 0x04}, "invalid MPA request or reply"},
    {{2, 0, 0x05}, "local catastrophic error"},
    {{2, 0, 0x06}, "insufficient IRD resources"},
    {{2, 0, 0x07}, "no matching ready-to-receive message"},
};

constexpr std::string_view kTypes[][3] = {
    {"local catastrophic error", "remote protection error", "remote operation error"},
    {"DDP local catastrophic error", "DDP tagged buffer error", "DDP untagged buffer error"},
    {"MPA error", "", ""},
};

std::string_view type_of(const TerminateCode& code) {
  if (code.layer >= std::size(kTypes) || code.type >= std::size(kTypes[0])) return {};
  return kTypes[code.layer][code.type];
}

std::string numbers_of(const TerminateCode& code) {
  return std::to_string(code.layer) + '/' + std::to_string(code.type) + '/' +
         std::to_string(code.code);
}

/// The local catastrophic errors of RDMAP and DDP, whose code tells nothing.
bool is_catastrophic(const TerminateCode& code) { return code.layer <= 1 && code.type == 0; }

}  // namespace

std::string to_string(const TerminateCode& code) {
  const std::string_view type = type_of(code);
  if (type.empty()) return "unknown error " + numbers_of(code);
  if (is_catastrophic(code)) return std::string(type);
  const auto* const words = std::find_if(std::begin(kCodes), std::end(kCodes),
                                         [&](const Words& entry) { return entry.code == code; });
  if (words == std::end(kCodes)) return std::string(type) + ": unknown code " + numbers_of(code);
  return std::string(type) + ": " + std::string(words->text);
}

std::string_view to_string(AsyncEventType type) {
  switch (type) {
    case AsyncEventType::qp_fatal:
      return "queue pair failed";
    case AsyncEventType::peer_closed:
      return "peer closed the connection";
    case AsyncEventType::sq_drained:
      return "send queue drained";
    case AsyncEventType::last_wqe_reached:
      return "last receive taken from the shared receive queue";
    case AsyncEventType::srq_limit_reached:
      return "shared receive queue below its limit";
    case AsyncEventType::cq_overflow:
      return "completion queue full";
    case AsyncEventType::port_active:
      return "port active";
    case AsyncEventType::port_error:
      return "port without link";
    case AsyncEventType::device_fatal:
      return "device failed or removed";
    case AsyncEventType::accept_refused:
      return "listener refuses connections for want of descriptors";
  }
  return "unknown";
}

std::string to_string(const DatagramError& error) {
  const std::string peer = error.peer.to_string();
  const std::string reporter = error.reporter.host();
  switch (error.kind) {
    case DatagramErrorKind::protocol:
      break;
    case DatagramErrorKind::port_unreachable:
      return "Nobody receives at " + peer + ", says " + reporter +
             " (ICMP port unreachable, which can be forged): start the peer, or correct its port";
    case DatagramErrorKind::host_unreachable:
      return "No way leads to " + peer + ", says " + reporter +
             " (ICMP unreachable, which can be forged): check the address, the routes, and that "
             "the host is up";
    case DatagramErrorKind::path_prohibited:
      return "A filter lets nothing through to " + peer + ", says " + reporter +
             " (ICMP administratively prohibited, which can be forged): open the UDP port in the "
             "firewalls between";
    case DatagramErrorKind::mtu_black_hole:
      return "Datagrams of " + std::to_string(error.datagram_bytes) + " bytes to " + peer +
             " vanish, smaller ones get through" +
             (error.smaller_bytes == 0
                  ? std::string()
                  : ", so none are of more than " + std::to_string(error.smaller_bytes) +
                        " bytes for now") +
             ": let ICMP \"fragmentation needed\" and \"packet too big\" pass, lower the MTU of "
             "the interface, or set DatagramOptions::segment (--segment)";
    case DatagramErrorKind::receive_overflow:
      return std::to_string(error.datagrams) +
             " datagrams found no room in the receive buffer: raise net.core.rmem_max and "
             "DeviceOptions::udp_receive_buffer (--udp-buffer), poll more often, or have the peers "
             "send slower (DatagramOptions::max_rate, --rate)";
  }
  return peer + (error.reported ? " reports: " : " sent what was refused: ") +
         to_string(error.code);
}

}  // namespace diwarp
