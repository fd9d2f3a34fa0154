// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/network_reports.h"

#include <string>

#include "base/log.h"
#include "dgram/envelope.h"

namespace diwarp::rnic {

namespace {

using Kind = llp::IcmpReport::Kind;

struct Row {
  Counter counter;
  DatagramErrorKind error;
};

constexpr Row row_of(Kind kind) {
  switch (kind) {
    case Kind::port:
      return {Counter::port_unreachable, DatagramErrorKind::port_unreachable};
    case Kind::host:
      return {Counter::host_unreachable, DatagramErrorKind::host_unreachable};
    case Kind::prohibited:
      break;
  }
  return {Counter::path_prohibited, DatagramErrorKind::path_prohibited};
}

DatagramError of_kind(DatagramErrorKind kind, const Address& peer) {
  DatagramError error;
  error.peer = peer;
  error.kind = kind;
  return error;
}

}  // namespace

void NetworkReports::icmp(const llp::IcmpReport& report, Time now) noexcept {
  const auto incarnation = dgram::Envelope::quoted_incarnation(report.quoted);
  // guard(network-reports): condition => false
  if (incarnation && *incarnation != identity_.incarnation(report.destination))
    return counters_.add(Counter::drop_icmp, report.destination);
  const Row row = row_of(report.kind);
  counters_.add(row.counter);
  DatagramError error = of_kind(row.error, report.destination);
  error.reporter = report.reporter;
  if (limit_.take(now)) inform(error);  // guard(network-reports): limit_.take(now) => true
}

void NetworkReports::overflowed(uint64_t datagrams, Time now) noexcept {
  DatagramError error = of_kind(DatagramErrorKind::receive_overflow, {});
  error.datagrams = datagrams;
  if (limit_.take(now)) inform(error);
}

void NetworkReports::black_hole(const Address& peer, uint32_t datagram_bytes,
                                uint32_t smaller) noexcept {
  counters_.add(Counter::mtu_black_holes);
  DatagramError error = of_kind(DatagramErrorKind::mtu_black_hole, peer);
  error.datagram_bytes = datagram_bytes;
  error.smaller_bytes = smaller;
  inform(error);
}

void NetworkReports::inform(const DatagramError& error) noexcept {
  errors_.inform(error);
  const bool proven = error.kind == DatagramErrorKind::mtu_black_hole;
  log::tell(proven ? LogLevel::warn : LogLevel::info, counters_.subject(),
            [&] { return to_string(error); });
}

}  // namespace diwarp::rnic
