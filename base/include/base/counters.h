// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/cache_line.h"

namespace diwarp {

/// Every counter: its name and what it counts. This table is the only place to add one.
// clang-format off
#define DIWARP_COUNTERS(X)                                                                  \
  X(rx_datagrams,           "datagrams received")                                           \
  X(rx_bytes,               "UDP payload bytes received")                                   \
  X(tx_datagrams,           "datagrams handed to the link")                                 \
  X(tx_bytes,               "UDP payload bytes handed to the link")                         \
  X(drop_truncated,         "datagrams too short for the headers they claim")               \
  X(drop_version,           "datagrams of an unknown wire format version")                  \
  X(drop_class,             "datagrams of an unknown class")                                \
  X(drop_flags,             "datagrams with an unknown flag")                               \
  X(drop_reserved,          "datagrams with a reserved bit set")                            \
  X(drop_crc,               "datagrams whose CRC32C does not match")                        \
  X(drop_opcode,            "datagrams with an opcode that is unknown or not allowed there") \
  X(drop_ddp_version,       "datagrams whose DDP version is not 1")                         \
  X(drop_rdmap_version,     "datagrams whose RDMAP version is not 1")                       \
  X(drop_queue_number,      "untagged segments for a queue that their opcode does not use") \
  X(drop_q_key,             "segments with another Q_Key than the queue pair's")            \
  X(drop_state,             "segments for a queue pair that does not receive in its state") \
  X(drop_oversized,         "segments that reach beyond the message they claim, or its limit") \
  X(drop_no_receive,        "segments of Sends that found no posted receive")               \
  X(drop_receive_too_small, "segments of Sends longer than the posted receive")             \
  X(drop_late,              "segments of messages that were reported already")              \
  X(drop_duplicate,         "segments whose bytes were all placed before")                  \
  X(drop_contradiction,     "segments that contradict others of their message")             \
  X(drop_range_limit,       "segments that would add a range to a full validity map, or need one where none is free") \
  X(drop_share,             "segments from a source that exhausted its share of receives")  \
  X(drop_no_context,        "segments that found no room for a new message")                \
  X(drop_sources_full,      "segments from new sources that found no room")                 \
  X(drop_stag,              "tagged segments with an STag that is unknown or not valid here") \
  X(drop_access,            "tagged segments without the access right they need")           \
  X(drop_bounds,            "tagged segments that reach outside their region")              \
  X(drop_stag_limit,        "tagged segments not looked at after too many that named memory in vain") \
  X(drop_unvalidated,       "tagged segments for a region that wants sources to prove their address first") \
  X(drop_no_memory,         "datagrams and parts of streams dropped since memory for them could not be had") \
  X(drop_filtered,          "datagrams from sources that the queue pair does not listen to")    \
  X(drop_response,          "segments of Read Responses that nobody (any more) waits for")      \
  X(drop_group,             "datagrams that came to a group and have no place there")         \
  X(drop_control,           "control messages that are malformed or have no place here")        \
  X(errors_sent,            "Error messages sent to sources")                                 \
  X(errors_suppressed,      "Error messages not sent for their rate, length or cause")         \
  X(errors_received,        "Error messages received")                                        \
  X(error_queue_dropped,    "errors that a queue pair's error queue had no room for")          \
  X(challenges_sent,        "times a source had to prove its address first")                  \
  X(echoes_received,        "sources that proved their address")                              \
  X(records_completed,      "Write-Records reported with every byte valid")                   \
  X(records_partial,        "Write-Records reported with bytes missing")                      \
  X(records_evicted,        "of these, those that gave way to newer ones")                    \
  X(reads_served,           "Read Requests over datagrams that were answered")                \
  X(read_retries,           "Read Requests over datagrams that asked for gaps again")         \
  X(read_timeouts,          "Reads over datagrams that ended with bytes missing")             \
  X(drop_rd_header,         "reliable datagrams whose RD header is malformed")                \
  X(drop_rd_association,    "reliable datagrams of an association that is not there")         \
  X(drop_rd_invalid_ack,    "reliable datagrams that acknowledge what was never sent")        \
  X(drop_rd_window,         "reliable datagrams outside the window that was given")           \
  X(rd_associations,        "times queue pairs agreed on reliable delivery")                  \
  X(rd_retransmitted,       "reliable datagrams sent again")                                  \
  X(rd_acknowledgements,    "acknowledgements that travelled by themselves")                  \
  X(rd_held,                "times a reliable message found no receive and held its peer")    \
  X(rd_refused,             "reliable datagrams refused for an error")                        \
  X(rd_resets_sent,         "datagrams answered by saying that their association is gone")    \
  X(rd_resets_limited,      "such answers left out, as too many waited to be sent")           \
  X(rd_restarts,            "peers that lost their association with work under way")          \
  X(rd_silent,              "peers given up for their silence")                               \
  X(rd_early_dropped,       "peers that sent too late what their early datagrams waited for") \
  X(rd_forgotten,           "peers forgotten for want of traffic")                            \
  X(message_timeouts,       "incomplete messages that were closed by their timeout")        \
  X(messages_evicted,       "incomplete Sends that gave way to newer ones")                 \
  X(rx_overflow,            "datagrams the kernel dropped for want of receive buffer")      \
  X(backlog_drops,          "packets of the whole host, since the device opened, that its backlog had no room for (net.core.netdev_max_backlog)") \
  X(port_unreachable,       "ICMP messages that say that nobody receives at a destination's port") \
  X(host_unreachable,       "ICMP messages that say that no way leads to a destination")       \
  X(path_prohibited,        "ICMP messages that say that a filter keeps datagrams from a destination") \
  X(drop_icmp,              "ICMP messages that quote what was not sent from here")         \
  X(mtu_black_holes,        "times that datagrams of some size vanished on the way to a peer and smaller ones did not") \
  X(loopback_to_remote,     "requests refused since a device on a loopback address has no way to another host") \
  X(tx_errors,              "datagrams the kernel refused to send")                         \
  X(impaired_offered,       "datagrams that DIWARP_IMPAIR had its way with: all that were to be sent") \
  X(impaired_dropped,       "of these, those that it dropped")                              \
  X(tx_would_block,         "times a send had to wait for room in the socket buffer")       \
  X(gso_missing,            "links for which the kernel has no UDP_SEGMENT: datagrams leave singly") \
  X(gso_refused,            "links that stopped using UDP_SEGMENT since the kernel refused to segment") \
  X(gro_missing,            "links for which the kernel has no UDP_GRO: datagrams come in singly") \
  X(rx_buffer_cut,          "links with less receive buffer than was asked for (net.core.rmem_max)") \
  X(tx_buffer_cut,          "links with less send buffer than was asked for (net.core.wmem_max)") \
  X(jumbo_refused,          "links that stopped fragmenting since their send buffer is too small") \
  X(busy_poll_refused,      "sockets whose busy polling the system did not let be set (CAP_NET_ADMIN)") \
  X(connect_refused,        "links that got no second socket for the destination they send to most") \
  X(local_peers,            "rings in shared memory that queue pairs got to others of this host")  \
  X(local_datagrams,        "datagrams sent through shared memory")                         \
  X(local_bytes,            "their bytes")                                                  \
  X(local_overflow,         "datagrams lost since a ring in shared memory was full")        \
  X(local_refused,          "rings in shared memory, and connections for them, that either side refused") \
  X(uring_rearmed,          "requests of io_uring's that bring input, made since the one before had ended") \
  X(uring_no_buffers,       "requests of io_uring's that bring input and found no free buffer")  \
  X(uring_refused,          "times the kernel did not take requests of io_uring's, mostly for want of memory") \
  X(uring_unregistered,     "sockets that found no place among the files of io_uring")       \
  X(uring_sq_full,          "times requests did not fit into io_uring's submission queue")  \
  X(uring_cq_overflow,      "times completions did not fit into io_uring's completion queue") \
  X(rc_connections,         "RC connections established")                                   \
  X(rc_disconnects,         "RC connections ended in order")                                \
  X(rc_resets,              "RC connections lost without an orderly end")                   \
  X(rc_lingers_limited,     "ended RC connections closed at once, as too many waited for their peers") \
  X(rc_peer_timeouts,       "RC connections ended because the peer's TCP answered no more")    \
  X(rc_protocol_errors,     "RC connections ended because the peer broke the protocol")     \
  X(rc_crc_errors,          "FPDUs whose CRC32C does not match")                            \
  X(rc_terminates_sent,     "Terminate messages sent")                                       \
  X(rc_terminates_received, "Terminate messages received")                                   \
  X(rc_receive_not_ready,   "times a message found no posted receive and held its connection") \
  X(rc_rx_fpdus,            "FPDUs received")                                               \
  X(rc_tx_fpdus,            "FPDUs sent")                                                   \
  X(rc_rx_bytes,            "TCP payload bytes received on RC connections")                 \
  X(rc_tx_no_memory,        "times that an RC queue pair found too little memory to send: it waited, or sent less") \
  X(rc_tx_bytes,            "TCP payload bytes sent on RC connections")                     \
  X(rc_zerocopy_sends,      "calls that gave bytes of RC connections to the kernel without copying (MSG_ZEROCOPY)") \
  X(rc_zerocopy_copied,     "of these, those whose bytes the kernel copied all the same (loopback, veth)") \
  X(rc_zerocopy_no_memory,  "calls that copied for want of memory for MSG_ZEROCOPY (net.core.optmem_max, locked memory)") \
  X(rc_zerocopy_full,       "calls that copied since too many without copying were in flight on the connection") \
  X(rc_zerocopy_refused,    "RC connections that copy although DeviceOptions::zerocopy_from asks for less") \
  X(rc_zerocopy_odd,        "entries of TCP error queues that told nothing of calls under way") \
  X(mpa_rejects,            "MPA connection requests that either side rejected")            \
  X(mpa_bad_requests,       "malformed MPA request or reply frames")                        \
  X(mpa_timeouts,           "MPA negotiations that took too long")                          \
  X(mpa_evicted,            "connections closed before their MPA request came, to make room for others") \
  X(accept_refused,         "connections that listeners refused for want of a descriptor")    \
  X(pcap_packets,           "packets captured to a file (DeviceOptions::pcap)")             \
  X(pcap_dropped,           "packets not captured, as the file or the disk was full, or it was not written in time") \
  X(events_dropped,         "asynchronous events that gave way to newer ones in a full queue")
// clang-format on

enum class Counter : uint16_t {
#define DIWARP_COUNTER_ENUMERATOR(name, description) name,
  DIWARP_COUNTERS(DIWARP_COUNTER_ENUMERATOR)
#undef DIWARP_COUNTER_ENUMERATOR
};

/// What a device has at the moment and does with its time, for those who watch it (diwarp-stat): a
/// gauge goes up and down, a sum only up. Device::counters() does not have these.
// clang-format off
#define DIWARP_METERS(X)                                                                    \
  X(queue_pairs,        gauge, "queue pairs")                                               \
  X(completion_queues,  gauge, "completion queues")                                         \
  X(completion_entries, gauge, "completions that the completion queues have room for")      \
  X(open_records,       gauge, "Write-Records that are open: bytes are missing")            \
  X(completions,        sum,   "completions put into completion queues")                    \
  X(completions_polled, sum,   "completions taken out of them")                             \
  X(engine_work_ns,     sum,   "nanoseconds of the engine's steps that moved something, estimated") \
  X(engine_idle_ns,     sum,   "nanoseconds of its steps that found nothing to do, estimated")
// clang-format on

enum class Meter : uint16_t {
#define DIWARP_METER_ENUMERATOR(name, kind, description) name,
  DIWARP_METERS(DIWARP_METER_ENUMERATOR)
#undef DIWARP_METER_ENUMERATOR
};

enum class MeterKind : uint8_t { sum, gauge };

/// One value per Counter and per Meter. Any thread may read; add() and subtract() are for the one
/// thread (at a time) that owns them, add_shared() for all others, and the two must not meet on the
/// same value. It has no pointers: it may lie in memory that other processes read
/// (base/shared_counters.h).
class Counters {
 public:
  void add(Counter counter, uint64_t n = 1) { add(values_[index(counter)], n); }
  void add_shared(Counter counter, uint64_t n = 1) {
    values_[index(counter)].fetch_add(n, std::memory_order_relaxed);
  }
  uint64_t get(Counter counter) const {
    return values_[index(counter)].load(std::memory_order_relaxed);
  }

  void add(Meter meter, uint64_t n = 1) { add(meters_[index(meter)].value, n); }
  void subtract(Meter meter, uint64_t n = 1) { add(meter, 0 - n); }
  void add_shared(Meter meter, uint64_t n = 1) {
    meters_[index(meter)].value.fetch_add(n, std::memory_order_relaxed);
  }
  void subtract_shared(Meter meter, uint64_t n = 1) { add_shared(meter, 0 - n); }
  uint64_t get(Meter meter) const {
    return meters_[index(meter)].value.load(std::memory_order_relaxed);
  }

  static constexpr size_t count() { return kNames.size(); }
  static constexpr std::string_view name(Counter counter) { return kNames[index(counter)]; }
  static constexpr std::string_view description(Counter counter) {
    return kDescriptions[index(counter)];
  }
  /// In bytes from the start of the object.
  static constexpr size_t offset(Counter counter) {
    return offsetof(Counters, values_) + index(counter) * sizeof(uint64_t);
  }

  static constexpr size_t meter_count() { return kMeterNames.size(); }
  static constexpr std::string_view name(Meter meter) { return kMeterNames[index(meter)]; }
  static constexpr std::string_view description(Meter meter) {
    return kMeterDescriptions[index(meter)];
  }
  static constexpr MeterKind kind(Meter meter) { return kMeterKinds[index(meter)]; }
  static constexpr size_t offset(Meter meter) {
    return offsetof(Counters, meters_) + index(meter) * sizeof(MeterCell);
  }

 private:
  /// On a cache line of its own, as different threads write them.
  struct alignas(kCacheLine) MeterCell {
    std::atomic<uint64_t> value{0};
  };

  static void add(std::atomic<uint64_t>& value, uint64_t n) {
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  static constexpr size_t index(Counter counter) { return static_cast<size_t>(counter); }
  static constexpr size_t index(Meter meter) { return static_cast<size_t>(meter); }

#define DIWARP_COUNTER_NAME(name, description) std::string_view{#name},
#define DIWARP_COUNTER_DESCRIPTION(name, description) std::string_view{description},
  static constexpr auto kNames = std::to_array({DIWARP_COUNTERS(DIWARP_COUNTER_NAME)});
  static constexpr auto kDescriptions =
      std::to_array({DIWARP_COUNTERS(DIWARP_COUNTER_DESCRIPTION)});
#undef DIWARP_COUNTER_NAME
#undef DIWARP_COUNTER_DESCRIPTION
#define DIWARP_METER_NAME(name, kind, description) std::string_view{#name},
#define DIWARP_METER_KIND(name, kind, description) MeterKind::kind,
#define DIWARP_METER_DESCRIPTION(name, kind, description) std::string_view{description},
  static constexpr auto kMeterNames = std::to_array({DIWARP_METERS(DIWARP_METER_NAME)});
  static constexpr auto kMeterKinds = std::to_array({DIWARP_METERS(DIWARP_METER_KIND)});
  static constexpr auto kMeterDescriptions =
      std::to_array({DIWARP_METERS(DIWARP_METER_DESCRIPTION)});
#undef DIWARP_METER_NAME
#undef DIWARP_METER_KIND
#undef DIWARP_METER_DESCRIPTION

  std::array<std::atomic<uint64_t>, kNames.size()> values_{};
  std::array<MeterCell, kMeterNames.size()> meters_{};
};

}  // namespace diwarp
