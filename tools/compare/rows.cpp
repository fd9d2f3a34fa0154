// SPDX-License-Identifier: Apache-2.0
#include "compare/rows.h"

#include <regex.h>

#include <algorithm>
#include <string>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

constexpr Direction kAtMost = Direction::at_most;
constexpr Direction kAtLeast = Direction::at_least;

std::vector<Row> make_table() {
  return {
      {"ud-send-latency", "UD Send 64 B / UDP", "ud-send-ping", "udp-ping", 1.15, kAtMost},
      {"ud-record-latency", "UD Write-Record 64 B / UDP", "ud-record-ping", "udp-ping", 1.15,
       kAtMost},
      {"ud-read-latency", "UD Read 64 B / UDP", "ud-read-ping", "udp-ping"},
      {"rd-send-latency", "RD Send 64 B / UDP", "rd-send-ping", "udp-ping"},
      {"udp-connected-latency", "connected UDP 64 B / UDP", "udp-connected-ping", "udp-ping"},
      {"rc-send-latency", "RC Send 64 B / TCP", "rc-send-ping", "tcp-ping", 1.15, kAtMost},
      {"rc-nocrc-send-latency", "the same, CRC off", "rc-nocrc-send-ping", "tcp-ping"},
      {"rc-write-latency", "RC Write 64 B, progress() / TCP", "rc-write-ping", "tcp-ping"},
      {"rc-idle-write-latency", "RC Write 64 B, RNIC thread / TCP", "rc-idle-write-ping",
       "tcp-ping"},
      {"rc-read-latency", "RC Read 64 B / TCP", "rc-read-ping", "tcp-ping"},
      {"ud-record-bandwidth", "UD Write-Record 1 MiB / UDP GSO+GRO", "ud-record", "udp-trains",
       0.65, kAtLeast},
      {"ud-send-bandwidth", "UD Send 1 MiB / UDP GSO+GRO", "ud-send", "udp-trains"},
      {"ud-read-bandwidth", "UD Read 1 MiB / UDP GSO+GRO", "ud-read", "udp-trains"},
      {"rd-send-bandwidth", "RD Send 1 MiB / UD Send", "rd-send", "ud-send", 0.80, kAtLeast},
      {"rd-record-bandwidth", "RD Write-Record 1 MiB / UD's", "rd-record", "ud-record"},
      {"rc-nocrc-write-bandwidth", "RC Write 1 MiB, CRC off / TCP", "rc-nocrc-write", "tcp-stream",
       0.85, kAtLeast},
      {"rc-write-bandwidth", "RC Write 1 MiB, CRC on / TCP", "rc-write", "tcp-stream", 0.65,
       kAtLeast},
      {"rc-send-bandwidth", "RC Send 1 MiB, CRC on / TCP", "rc-send", "tcp-stream"},
      {"rc-read-bandwidth", "RC Read 1 MiB, CRC on / TCP", "rc-read", "tcp-stream"},
      {"ud-rate-64", "UD Send 64 B rate / sendmmsg", "ud-rate-64", "udp-rate-64", 3, kAtLeast},
      {"ud-rate-1k", "UD Send 1 KiB rate / sendmmsg", "ud-rate-1k", "udp-rate-1k", 3, kAtLeast},
      {"rd-rate-64", "RD Send 64 B rate / sendmmsg", "rd-rate-64", "udp-rate-64"},
      {"fabric-tcp-small", "fi_pingpong tcp 64 B / RC, CRC off", "fabric-tcp-small",
       "rc-nocrc-small-ping", 1.7, kAtLeast},
      {"fabric-tcp-large", "fi_pingpong tcp 1 MiB / RC, CRC off", "fabric-tcp-large",
       "rc-nocrc-large-ping", 1.5, kAtLeast},
      {"fabric-rxm-small", "fi_pingpong tcp;ofi_rxm 64 B / RC", "fabric-rxm-small",
       "rc-nocrc-small-ping"},
      {"fabric-rxm-large", "fi_pingpong tcp;ofi_rxm 1 MiB / RC", "fabric-rxm-large",
       "rc-nocrc-large-ping"},
      {"fabric-udp-small", "fi_pingpong udp 64 B / UD", "fabric-udp-small", "ud-small-ping"},
      {"fabric-rxd-small", "fi_pingpong udp;ofi_rxd 64 B / RD", "fabric-rxd-small", "rd-small-ping",
       2.5, kAtLeast},
      {"fabric-rxd-large", "fi_pingpong udp;ofi_rxd 1 MiB / RD", "fabric-rxd-large",
       "rd-large-ping", 5, kAtLeast},
      {"local-ud-send-latency", "local UD Send 64 B / UDP", "ud-local-ping", "udp-ping", 0.28,
       kAtMost},
      {"local-ud-record-latency", "local UD Write-Record 64 B / UDP", "ud-local-record-ping",
       "udp-ping"},
      {"local-rd-send-latency", "local RD Send 64 B / UDP", "rd-local-ping", "udp-ping", 0.36,
       kAtMost},
      {"local-rc-send-latency", "local RC Send 64 B / TCP", "rc-local-ping", "tcp-ping", 0.30,
       kAtMost},
      {"local-ud-record-bandwidth", "local UD Write-Record 1 MiB / TCP", "ud-local-record",
       "tcp-stream", 1.5, kAtLeast},
      {"local-rc-write-bandwidth", "local RC Write 1 MiB / TCP", "rc-local-write", "tcp-stream",
       1.5, kAtLeast},
      {"local-rc-nocrc-bandwidth", "the same, CRC off", "rc-local-nocrc-write", "tcp-stream", 1.5,
       kAtLeast},
      {"local-ud-rate-64", "local UD Send 64 B rate / UD's", "ud-local-rate-64", "ud-rate-64", 2.5,
       kAtLeast},
      {"local-fabric-small", "fi_pingpong shm 64 B / local RD", "fabric-shm-small",
       "rd-local-small-ping", 1, kAtLeast},
      {"local-fabric-large", "fi_pingpong shm 1 MiB / local RC", "fabric-shm-large",
       "rc-local-large-ping", 0.83, kAtLeast},
      {"local-ucx-small", "ucx_perftest posix 64 B / local RC", "ucx-posix-small",
       "rc-local-small-ping", 0.83, kAtLeast},
      {"local-ucx-bandwidth", "local RC Write 1 MiB / ucx_perftest", "rc-local-nocrc-write",
       "ucx-posix-bandwidth", 0.83, kAtLeast},
      {"active-queue-pairs", "64 B rate, 64 active QPs / 1", "ud-rate-64-qps", "ud-rate-64", 0.80,
       kAtLeast},
      {"idle-queue-pairs", "64 B latency, 10,000 idle QPs / none", "ud-idle-ping", "ud-send-ping",
       1.10, kAtMost},
      {"ud-memory", "memory of an idle UD QP, KiB", "ud-idle-memory", "", 4, kAtMost},
      {"rc-memory", "memory of an idle RC QP, KiB", "rc-idle-memory", "", 8, kAtMost},
      {"ud-used-memory", "the same, UD, after a message", "ud-used-memory", ""},
      {"rc-used-memory", "the same, RC, after a message", "rc-used-memory", ""},
      {"rc-nocrc-large-latency", "RC Send 1 MiB latency, CRC off / TCP", "rc-nocrc-large-ping",
       "tcp-large-ping"},
      {"fabric-tcp-large-plain", "fi_pingpong tcp 1 MiB / TCP", "fabric-tcp-large",
       "tcp-large-ping"},
      {"fabric-tcp-small-plain", "fi_pingpong tcp 64 B / TCP", "fabric-tcp-small",
       "tcp-small-ping"},
  };
}

/// An extended regular expression (POSIX) that ignores case.
class Pattern {
 public:
  explicit Pattern(const std::string& regex) {
    if (::regcomp(&compiled_, regex.c_str(), REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0) {
      throw Failure("\"" + regex +
                    "\" is not a regular expression (--list shows the rows' names).");
    }
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() { ::regfree(&compiled_); }

  bool is_in(const std::string& text) const {
    return ::regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_;
};

}  // namespace

const std::vector<Row>& row_table() {
  static const std::vector<Row> table = make_table();
  return table;
}

std::vector<Row> choose_rows(const std::string& regex) {
  const Pattern wanted(regex);
  std::vector<Row> chosen;
  std::ranges::copy_if(row_table(), std::back_inserter(chosen),
                       [&](const Row& row) { return wanted.is_in(std::string(row.name)); });
  if (chosen.empty()) {
    throw Failure("No row's name matches \"" + regex + "\": --list shows them.");
  }
  return chosen;
}

std::vector<Row> resized(std::vector<Row> rows, size_t size) {
  const std::string text =
      size % 1024 == 0 ? std::to_string(size / 1024) + " KiB" : std::to_string(size) + " B";
  for (Row& row : rows) {
    for (const std::string& own :
         {std::string("64 B"), std::string("1 KiB"), std::string("1 MiB")}) {
      const size_t at = row.title.find(own);
      if (at == std::string::npos) continue;
      row.title.replace(at, own.size(), text);
      row.target.reset();
      break;
    }
  }
  return rows;
}

std::vector<LaneInfo> lanes_of(std::span<const Row> rows) {
  std::vector<LaneInfo> lanes;
  std::ranges::copy_if(lane_table(), std::back_inserter(lanes), [&](const LaneInfo& lane) {
    return std::ranges::any_of(
        rows, [&](const Row& row) { return row.lane == lane.name || row.baseline == lane.name; });
  });
  return lanes;
}

std::string_view unit_of(Kind kind) {
  switch (kind) {
    case Kind::latency:
    case Kind::ping_pong:
      return "us";
    case Kind::bandwidth:
      return "GB/s";
    case Kind::rate:
      return "M/s";
    case Kind::memory:
      return "KiB";
  }
  return "";
}

double in_unit(Kind kind, double value) {
  switch (kind) {
    case Kind::latency:
    case Kind::ping_pong:
      return value;
    case Kind::bandwidth:
      return value / 1e9;
    case Kind::rate:
      return value / 1e6;
    case Kind::memory:
      return value / 1024;
  }
  return value;
}

}  // namespace diwarp::tools
