// SPDX-License-Identifier: Apache-2.0
#include "common/hints.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "common/socket.h"

namespace diwarp::tools {
namespace {

/// Errors that are kept until they are asked for.
constexpr size_t kMostErrors = 256;

std::vector<DatagramError>& noted_errors() {
  static std::vector<DatagramError> noted;
  return noted;
}

struct Row {
  std::string_view counter;
  /// With "%" for the number.
  std::string_view sentence;
};

// In the order of certainty: what this host has counted before what others said, and what says
// little by itself last. Those of which an error queue has more to say come without a row.
constexpr Row kRows[] = {
    {"rx_overflow",
     "% datagrams found no room in the receive buffer$: raise net.core.rmem_max (sysctl -w) and "
     "--udp-buffer, or send slower (--rate, a smaller --window)."},
    {"local_overflow",
     "% datagrams found their ring in shared memory full: use a larger --local-ring, or send "
     "slower "
     "(--rate, a smaller --window)."},
    {"drop_no_receive",
     "% datagrams found no posted receive: use a smaller --window, or send slower (--rate)."},
    {"mtu_black_holes",
     "Datagrams of the path MTU vanish, smaller ones get through: lower the MTU of the interface "
     "or use a smaller --segment, or let ICMP \"fragmentation needed\" pass."},
    {"loopback_to_remote",
     "A device on a loopback address reaches this host alone: give --device an address from which "
     "the peer is reached."},
    {"port_unreachable",
     "% ICMP messages say that nobody receives at the peer's port: start the peer, or check "
     "whether it has ended."},
    {"host_unreachable",
     "% ICMP messages say that no way leads to the peer: check addresses and routes."},
    {"path_prohibited",
     "% ICMP messages say that a filter keeps datagrams from the peer: open its UDP ports in the "
     "firewall."},
    {"rd_silent",
     "% peers gave no sign of life: check that they run, and that no firewall swallows UDP."},
    {"drop_crc", "% datagrams came with a wrong CRC: something on the way damages them."},
    {"impaired_dropped", "DIWARP_IMPAIR dropped % datagrams: unset it."},
    {"message_timeouts",
     "% messages came in part only: some of their datagrams got lost. If it is all messages of "
     "more than one datagram, the path may not carry long ones: try --segment 1200."},
    {"backlog_drops",
     "% packets of this whole host, perhaps others' as well, found no room in its backlog: raise "
     "net.core.netdev_max_backlog (sysctl -w)."},
};

std::string number_text(uint64_t number) { return std::to_string(number); }

std::string buffer_text(const SocketBufferAttributes& buffer) {
  if (buffer.granted == 0) return "";
  std::string text = " of " + number_text(buffer.granted) + " bytes";
  if (buffer.asked > buffer.granted) text += " (" + number_text(buffer.asked) + " were asked for)";
  return text;
}

std::string sentence_of(const Row& row, uint64_t count, const SocketBufferAttributes& buffer) {
  std::string text;
  for (const char letter : row.sentence) {
    if (letter == '%')
      text += number_text(count);
    else if (letter == '$')
      text += buffer_text(buffer);
    else
      text += letter;
  }
  return text;
}

/// The counter of which an entry of the error queue says more; "" of none.
std::string_view counter_of(DatagramErrorKind kind) {
  switch (kind) {
    case DatagramErrorKind::port_unreachable:
      return "port_unreachable";
    case DatagramErrorKind::host_unreachable:
      return "host_unreachable";
    case DatagramErrorKind::path_prohibited:
      return "path_prohibited";
    case DatagramErrorKind::mtu_black_hole:
      return "mtu_black_holes";
    case DatagramErrorKind::receive_overflow:  // the counter has the sum
    case DatagramErrorKind::protocol:
      break;
  }
  return "";
}

/// The latest entry that says more than this counter.
const DatagramError* detail_of(const LossFacts& facts, std::string_view counter) {
  const auto found =
      std::find_if(facts.errors.rbegin(), facts.errors.rend(),
                   [&](const DatagramError& error) { return counter_of(error.kind) == counter; });
  return found == facts.errors.rend() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> hints_of(const LossFacts& facts) {
  std::vector<std::string> hints;
  for (const Row& row : kRows) {
    const auto found = facts.counters.find(row.counter);
    if (found == facts.counters.end() || found->second == 0) continue;
    const DatagramError* const detail = detail_of(facts, row.counter);
    hints.push_back(detail != nullptr ? to_string(*detail) + "."
                                      : sentence_of(row, found->second, facts.receive_buffer));
  }
  return hints;
}

std::string with_hints(std::string text, const std::vector<std::string>& hints) {
  for (const std::string& hint : hints) text += " " + hint;
  return text;
}

LossWatch::LossWatch(const Device& device, uint64_t udp_buffer)
    : device_(device), udp_buffer_(udp_buffer), before_(counters()) {}

std::map<std::string, uint64_t, std::less<>> LossWatch::counters() const {
  std::map<std::string, uint64_t, std::less<>> values;
  for (const CounterValue& counter : device_.counters())
    values.emplace(counter.name, counter.value);
  return values;
}

LossFacts LossWatch::facts() {
  LossFacts facts;
  facts.counters = counters();
  for (auto& [name, value] : facts.counters) value -= std::min(value, before_[name]);
  facts.errors = std::exchange(noted_errors(), {});
  if (facts.counters["rx_overflow"] != 0)
    facts.receive_buffer = {
        .asked = static_cast<size_t>(udp_buffer_),
        .granted = static_cast<size_t>(granted_receive_buffer(device_.address(), udp_buffer_))};
  return facts;
}

void note_errors(QueuePair& queue_pair) noexcept try {
  while (noted_errors().size() < kMostErrors) {
    const auto error = queue_pair.poll_error();
    if (!error) return;
    noted_errors().push_back(*error);
  }
} catch (const std::exception&) {
  // What is left to tell is told by the counters.
}

}  // namespace diwarp::tools
