// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/log.h"
#include "diwarp/address.h"
#include "diwarp/types.h"
#include "rdmap/opcodes.h"
#include "rnic/queues/send_entry.h"

namespace diwarp::rnic {
class LoggedCounters;
}

/// The lines of level trace, which tell of messages. Callers ask log::shows(LogLevel::trace) before
/// each, which is all that a message costs where it is off.
namespace diwarp::rnic::message_log {

[[gnu::cold]] void posted(const log::Subject& queue_pair,
                          std::span<const SendWorkRequest> requests) noexcept;
[[gnu::cold]] void posted(const log::Subject& queue_pair,
                          std::span<const ReceiveWorkRequest> requests) noexcept;
/// A null queue pair has no name. The request is over: sent, or, of those with a response,
/// answered.
[[gnu::cold]] void sent(const LoggedCounters* queue_pair, const SendEntry& entry) noexcept;
/// The last segment of a message came: `bytes` is its end, or, of an RDMA Write or a Read Response,
/// its length. `peer` is null on a connection.
[[gnu::cold]] void received(const log::Subject& queue_pair, rdmap::Opcode opcode, uint64_t bytes,
                            const Address* peer) noexcept;
/// The completion lies in its queue.
[[gnu::cold]] void completed(std::string_view device, const WorkCompletion& completion) noexcept;

}  // namespace diwarp::rnic::message_log
