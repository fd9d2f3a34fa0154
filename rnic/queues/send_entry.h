// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "diwarp/types.h"

namespace diwarp::rnic {

/// A posted request of the send queue, in the ring of its queue.
struct SendEntry {
  /// What the part to which the entry is handed over keeps until it is done.
  struct InFlight {
    uint32_t msn = 0;         // RD's: its MSN
    uint32_t release_at = 0;  // RC's: calls that the stream must have released
    uint64_t missing = 0;     // RD's: bytes of a Read that have not come
  };

  uint64_t wr_id = 0;
  Address destination;
  uint32_t q_key = 0;
  WrOpcode opcode = WrOpcode::send;
  SendFlags flags = SendFlags::none;
  WcStatus status = WcStatus::success;  // once done
  bool done = false;
  uint32_t vendor_error = 0;
  STag invalidate_stag = 0;
  RemoteMemory remote;
  uint64_t length = 0;  // bytes that travel
  std::span<Sge> sges;  // in the queue's own storage
  /// What the opcode takes besides; once a Read over datagrams is done, what of it is valid.
  std::variant<std::monostate, uint64_t, AtomicOperands, MemoryBinding, ReadLimits, ValidityMap>
      operands;
  SendEntry* next = nullptr;  // while handed over: its keeper's own list
  InFlight in_flight;         // the same: its keeper's own

  /// Immediate data that travel with a message that is gathered; null: none.
  const uint64_t* immediate() const { return std::get_if<uint64_t>(&operands); }
};

}  // namespace diwarp::rnic
