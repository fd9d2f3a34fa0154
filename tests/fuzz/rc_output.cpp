// SPDX-License-Identifier: Apache-2.0
#include "fuzz/rc_output.h"

#include "fuzz/ulpdu.h"

namespace diwarp::fuzz {
namespace {

constexpr size_t kReadBody = 28;
constexpr size_t kAtomicBody = 52;
constexpr uint32_t kTerminateQueue = 2;

bool is_send(unsigned code) { return code >= 3 && code <= 6; }

/// The untagged queue of an opcode (RFC 5040 section 4.3, RFC 7306 section 5).
uint32_t queue_of(unsigned code) {
  switch (code) {
    case opcode::kReadRequest:
    case opcode::kAtomicRequest:
      return 1;
    case opcode::kTerminate:
      return kTerminateQueue;
    case opcode::kAtomicResponse:
      return 3;
    default:
      return 0;
  }
}

}  // namespace

void RcOutput::restart(const RcStart& start) {
  over_ = false;
  next_msn_ = {1, 1, 1, 1};
  sends_.clear();
  asked_.clear();
  if (start.initiator && start.parameters.ready == ReadyToReceive::send) sends_.push_back({});
}

void RcOutput::take(std::span<const std::byte> ulpdu) {
  require(!over_, "an FPDU was sent behind a Terminate");
  require(ulpdu.size() >= kTaggedHeader, "a segment without header was sent");
  const unsigned control = std::to_integer<unsigned>(ulpdu[0]);
  require((control & 0x3FU) == 1, "a wrong DDP version, or reserved bits, were sent");
  require(std::to_integer<unsigned>(ulpdu[1]) >> 4U == 4, "a wrong RDMAP version was sent");
  const bool last = (control & 0x40U) != 0;
  (control & 0x80U) != 0 ? take_tagged(ulpdu, last) : take_untagged(ulpdu, last);
}

/// Writes are of the outbox. Responses are checked where they bring memory that nobody may write.
void RcOutput::take_tagged(std::span<const std::byte> ulpdu, bool last) {
  const unsigned code = std::to_integer<unsigned>(ulpdu[1]) & 15U;
  const uint64_t stag = number_in(ulpdu, 2, 4), offset = number_in(ulpdu, 6, 8);
  const auto payload = ulpdu.subspan(kTaggedHeader);
  require(last || !payload.empty(), "an empty segment was sent that is not the last");
  if (code == opcode::kWrite)
    return require(memory_.outbox.matches(payload, offset - kRemoteBase) || payload.empty(),
                   "a Write carries other bytes than the application's");
  require(code == opcode::kReadResponse, "a tagged segment with an untagged opcode was sent");
  if (stag == kReadOnlySink)
    require(memory_.read_only.matches(payload, offset - kBase),
            "a Read response carries other bytes than the memory's");
}

void RcOutput::take_untagged(std::span<const std::byte> ulpdu, bool last) {
  require(ulpdu.size() >= kUntaggedHeader, "a segment with half a header was sent");
  const unsigned code = std::to_integer<unsigned>(ulpdu[1]) & 15U;
  const auto queue = static_cast<uint32_t>(number_in(ulpdu, 6, 4));
  require(queue == queue_of(code), "a segment was sent on a queue that is not its opcode's");
  require(number_in(ulpdu, 10, 4) == next_msn_[queue], "a wrong MSN was sent");
  if (last) ++next_msn_[queue];
  const auto body = ulpdu.subspan(kUntaggedHeader);
  if (is_send(code)) return take_send(body, number_in(ulpdu, 14, 4), last);
  require(last, "a message of one segment was sent that goes on");
  if (code == opcode::kTerminate) over_ = true;
  if (queue == 1) take_request(body, code == opcode::kAtomicRequest);
}

void RcOutput::take_send(std::span<const std::byte> payload, uint64_t mo, bool last) {
  require(!sends_.empty(), "a Send was sent that nobody posted");
  const Send send = sends_.front();
  require(mo + payload.size() <= send.length && (!last || mo + payload.size() == send.length),
          "a Send of another length than posted was sent");
  require(memory_.outbox.matches(payload, send.at + mo), "a Send carries other bytes than posted");
  if (last) sends_.pop_front();
}

void RcOutput::take_request(std::span<const std::byte> body, bool atomic) {
  require(body.size() == (atomic ? kAtomicBody : kReadBody),
          "a request of a wrong length was sent");
  RcAsked asked{.atomic = atomic};
  if (atomic) {
    asked.identifier = static_cast<uint32_t>(number_in(body, 4, 4));
  } else {
    asked.sink = static_cast<uint32_t>(number_in(body, 0, 4));
    asked.offset = number_in(body, 4, 8);
    asked.left = static_cast<uint32_t>(number_in(body, 12, 4));
  }
  asked_.push_back(asked);
}

}  // namespace diwarp::fuzz
