// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "diwarp/address.h"
#include "diwarp/export.h"
#include "diwarp/flags.h"
#include "diwarp/sge.h"  // IWYU pragma: export
#include "diwarp/validity_map.h"

/// The plain values of the verbs: the parts of work requests, completions and attributes.
/// Names follow libibverbs; where a rule comes from an RFC, its clause stands beside it.
namespace diwarp {

using Duration = std::chrono::nanoseconds;

/// The longest message of any operation, in bytes (1 GiB).
inline constexpr uint64_t kMaxMessage = uint64_t{1} << 30;

/// The longest private data of a connection request or reply, in bytes (RFC 5044 section 7.1).
inline constexpr size_t kMaxPrivateData = 512;

/// The numbers of RC queue pairs have 24 bits and lie above all UDP ports, which are those of UD
/// and RD queue pairs.
inline constexpr uint32_t kLeastRcNumber = 0x10000;
inline constexpr uint32_t kMaxRcNumber = 0xffffff;

/// The operations that a memory region allows. A region may always be read locally.
enum class Access : uint32_t {
  none = 0,
  local_write = 1,         ///< receives, Reads and atomics' results may be placed into it
  remote_write = 2,        ///< peers may write into it (needs local_write)
  remote_read = 4,         ///< peers may read from it
  remote_atomic = 8,       ///< peers may do atomic operations on it (needs local_write)
  window_bind = 16,        ///< memory windows may be bound to it
  remote_invalidate = 32,  ///< a peer's Send with Invalidate may invalidate its STag
  validated_source = 64,   ///< UD: only of peers that have shown that they are at their address
                           ///< are Write-Records and Reads taken (docs/datagrams.md); others always
                           ///< have
  any_source = 128,  ///< hybrid devices: without it their regions are as with validated_source,
                     ///< since hardware's STags are easier to guess (docs/bridge.md)
};

template <>
inline constexpr bool kIsFlags<Access> = true;

enum class QpType : uint8_t {
  rc,  ///< reliable connection: iWARP over MPA/TCP
  ud,  ///< unreliable datagram: datagram-iWARP over UDP
  rd,  ///< reliable datagram: the same operations, delivered once and in order to each peer
};

/// The states of a queue pair. docs/architecture.md has the table of legal transitions.
enum class QpState : uint8_t {
  reset,    ///< nothing may be posted; the queues are empty
  init,     ///< receives may be posted
  rtr,      ///< RC: connected, or with a named peer, and receiving; sends may not be posted yet
  rts,      ///< ready to send: sends and receives may be posted
  sqd,      ///< RC: posted sends wait, those that were begun are finished
  closing,  ///< RC only: an orderly disconnect is under way; nothing may be posted
  error,    ///< posted requests are flushed
};

enum class WcStatus : uint8_t {
  success,
  local_length_error,        ///< a message was longer than the receive it found (RC)
  local_qp_operation_error,  ///< UD, RD: the network refused the message, and `vendor_error` is an
                             ///< errno; RC: the queue pair cannot do what was asked for
  local_protection_error,  ///< an SGE lies outside its region, or the region is unknown, of another
                           ///< protection domain, or not writable (receive)
  wr_flush_error,          ///< the queue pair left the state in which the request could be done
  general_error,           ///< a peer broke the protocol, or the connection was lost meanwhile
  remote_access_error,     ///< the peer refused the memory that a Read or an atomic named
  remote_operation_error,  ///< the peer could not do a Read or an atomic for another reason
  bad_response_error,      ///< the peer's response was not what was asked for
  window_bind_error,       ///< a window or a fast registration could not be bound, or an STag not
                           ///< be invalidated
  timeout,                 ///< UD Read: not all bytes came in time; `validity` tells which did
  retry_exceeded,  ///< RD: the peer did not answer for longer than `peer_timeout`; RC: the one that
                   ///< was named did not come in time
  peer_restarted,  ///< RD: the peer that answers at the address is not the one this was begun with
};

/// The operation of a work request of the send queue.
enum class WrOpcode : uint8_t {
  send,
  send_with_invalidate,       ///< RC: the peer also invalidates `invalidate_stag`
  rdma_write,                 ///< RC
  rdma_read,                  ///< RC: into exactly one SGE (none where nothing is read); UD, RD:
                              ///< into any
  rdma_read_with_invalidate,  ///< RC: a Read that invalidates the STag of its SGE when it is done
  immediate,                  ///< RC: 8 bytes of immediate data, a message of their own (RFC 7306)
  fetch_add,                  ///< RC: atomics on 8 bytes, with an SGE for the value before
                              ///< (never over datagrams: docs/datagrams.md)
  compare_swap,
  swap,
  local_invalidate,  ///< makes `invalidate_stag` (a window, fast registration or region) invalid
  bind_window,       ///< makes a memory window valid
  register_memory,   ///< makes a fast registration valid
  write_record,      ///< UD, RD: a Write that the target is told of, with a validity map
};

constexpr std::string_view to_string(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::send:
      return "send";
    case WrOpcode::send_with_invalidate:
      return "send_with_invalidate";
    case WrOpcode::rdma_write:
      return "rdma_write";
    case WrOpcode::rdma_read:
      return "rdma_read";
    case WrOpcode::rdma_read_with_invalidate:
      return "rdma_read_with_invalidate";
    case WrOpcode::immediate:
      return "immediate";
    case WrOpcode::fetch_add:
      return "fetch_add";
    case WrOpcode::compare_swap:
      return "compare_swap";
    case WrOpcode::swap:
      return "swap";
    case WrOpcode::local_invalidate:
      return "local_invalidate";
    case WrOpcode::bind_window:
      return "bind_window";
    case WrOpcode::register_memory:
      return "register_memory";
    case WrOpcode::write_record:
      return "write_record";
  }
  return "unknown";
}

enum class WcOpcode : uint8_t {
  send,
  recv,
  rdma_write,
  rdma_read,
  fetch_add,
  compare_swap,
  swap,
  local_invalidate,
  bind_window,
  register_memory,
  immediate,          ///< immediate data were sent
  recv_immediate,     ///< immediate data came; they took a posted receive and wrote nothing into it
  write_record,       ///< one was sent
  recv_write_record,  ///< one came; it took no receive, and wr_id is 0
};

constexpr std::string_view to_string(WcOpcode opcode) {
  switch (opcode) {
    case WcOpcode::send:
      return "send";
    case WcOpcode::recv:
      return "recv";
    case WcOpcode::rdma_write:
      return "rdma_write";
    case WcOpcode::rdma_read:
      return "rdma_read";
    case WcOpcode::fetch_add:
      return "fetch_add";
    case WcOpcode::compare_swap:
      return "compare_swap";
    case WcOpcode::swap:
      return "swap";
    case WcOpcode::local_invalidate:
      return "local_invalidate";
    case WcOpcode::bind_window:
      return "bind_window";
    case WcOpcode::register_memory:
      return "register_memory";
    case WcOpcode::immediate:
      return "immediate";
    case WcOpcode::recv_immediate:
      return "recv_immediate";
    case WcOpcode::write_record:
      return "write_record";
    case WcOpcode::recv_write_record:
      return "recv_write_record";
  }
  return "unknown";
}

DIWARP_EXPORT std::string_view to_string(QpType type);
DIWARP_EXPORT std::string_view to_string(QpState state);
DIWARP_EXPORT std::string_view to_string(WcStatus status);

/// One entry of a completion queue. With a status other than success only `wr_id`, `status`,
/// `vendor_error`, `opcode` and `qp_number` are meaningful, and `validity` and `valid_bytes` of a
/// Read that timed out.
struct WorkCompletion {
  uint64_t wr_id = 0;
  WcStatus status = WcStatus::success;
  WcOpcode opcode = WcOpcode::send;
  bool solicited = false;    ///< recv: the sender asked for a solicited event
  bool invalidated = false;  ///< recv: the sender had `invalidated_stag` invalidated
  STag invalidated_stag = 0;
  uint32_t vendor_error = 0;   ///< an errno where the network refused; a hardware device's own
                               ///< code where it failed; else 0
  uint32_t byte_count = 0;     ///< recv: bytes of the message; send: bytes sent
  uint32_t qp_number = 0;      ///< the local queue pair
  bool has_immediate = false;  ///< UD and RD: the message came with immediate data
  uint64_t immediate = 0;      ///< the data, most significant byte first on the wire
  Address source;              ///< UD and RD: address and port the message came from
  STag stag = 0;               ///< recv_write_record: where it was written
  uint64_t tagged_offset = 0;  ///< recv_write_record: of the message's first byte
  uint64_t valid_bytes = 0;    ///< recv_write_record; rdma_read over datagrams
  ValidityMap validity;        ///< of these bytes; offsets count from the message's first byte
};

/// Options of one send, to be combined with |.
enum class SendFlags : uint8_t {
  none = 0,
  signaled = 1,     ///< ask for a completion on success (failures always complete)
  solicited = 2,    ///< raise a solicited event at the peer (RFC 5040 section 4.3)
  inline_data = 4,  ///< copy the data at post time; the SGEs need no lkey and may be reused at once
  fence = 8,        ///< RC: begin only when all earlier Reads and atomics are done
};

template <>
inline constexpr bool kIsFlags<SendFlags> = true;

/// The peer's memory: so many bytes (the work request says) from `offset` on in the region or
/// window named by `stag`.
struct RemoteMemory {
  STag stag = 0;
  uint64_t offset = 0;  ///< tagged offset (TO)
};

/// Operands of an atomic operation on 8 bytes (RFC 7306 section 5). With the default masks they are
/// the usual ones.
struct AtomicOperands {
  uint64_t operand = 0;   ///< fetch_add: the number to add; compare_swap and swap: the new value
  uint64_t compare = 0;   ///< compare_swap: the value that is expected
  uint64_t add_mask = 0;  ///< fetch_add: a set bit is the top of a field, which carries no further
  uint64_t swap_mask = ~uint64_t{0};     ///< compare_swap and swap: the bits that are replaced
  uint64_t compare_mask = ~uint64_t{0};  ///< compare_swap: the bits that are compared
};

/// The binding that a bind_window or register_memory request makes valid.
struct MemoryBinding {
  STag stag = 0;    ///< the window's or fast registration's; its low 8 bits are the new key
  STag region = 0;  ///< bind_window: the region that holds the memory
  void* address = nullptr;
  uint64_t length = 0;  ///< bytes; 0 for bind_window: the window is unbound
  Access access = Access::none;
  uint64_t base = 0;  ///< the tagged offset of the first byte
};

/// How long a Read over datagrams may take. Zero: as the queue pair has it.
struct ReadLimits {
  Duration timeout{0};   ///< since the last new byte
  Duration deadline{0};  ///< in all
  int32_t retries = -1;  ///< how often what is missing is asked for again; -1: the queue pair's
};

/// A request of the send queue. The list of SGEs is copied when it is posted; the memory it names
/// is used until completion.
struct SendWorkRequest {
  uint64_t wr_id = 0;
  SgeList sges = {};
  SendFlags flags = SendFlags::signaled;
  Address destination = {};  ///< UD, RD: address and port of the peer's queue pair, or of a group;
                             ///< an AddressHandle fits; RC: ignored
  uint32_t q_key = 0;        ///< UD, RD: a Send's must equal the peer's Q_Key
  WrOpcode opcode = WrOpcode::send;
  RemoteMemory remote = {};  ///< Writes, Write-Records, Reads, atomics
  STag invalidate_stag = 0;  ///< send_with_invalidate: the peer's; local_invalidate: one's own
  /// 8 bytes that travel with the message. UD, RD: a Send or a Write-Record may have them; RC: only
  /// opcode immediate sends them.
  std::optional<uint64_t> immediate = {};
  AtomicOperands atomic = {};  ///< atomics
  MemoryBinding binding = {};  ///< bind_window, register_memory
  ReadLimits limits = {};      ///< UD: rdma_read
};

/// A Write-Record to post: the members of SendWorkRequest for WrOpcode::write_record.
struct WriteRecordWorkRequest {
  uint64_t wr_id = 0;
  SgeList sges = {};
  SendFlags flags = SendFlags::signaled;
  Address destination = {};  ///< of the peer's queue pair, or of a group; an AddressHandle fits
  RemoteMemory remote = {};
  std::optional<uint64_t> immediate = {};
};

/// A Read over datagrams to post: the members of SendWorkRequest for WrOpcode::rdma_read.
struct ReadWorkRequest {
  uint64_t wr_id = 0;
  SgeList sges = {};  ///< where the bytes go
  SendFlags flags = SendFlags::signaled;
  Address destination = {};
  RemoteMemory remote = {};
  ReadLimits limits = {};
};

/// A receive: where the next message goes.
struct ReceiveWorkRequest {
  uint64_t wr_id = 0;
  SgeList sges = {};
};

}  // namespace diwarp
