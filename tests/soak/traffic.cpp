// SPDX-License-Identifier: Apache-2.0
#include "soak/traffic.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace soak {

using diwarp::Access;
using diwarp::Errc;
using diwarp::QpType;
using diwarp::SendFlags;
using diwarp::SendWorkRequest;
using diwarp::WrOpcode;

namespace {

constexpr uint32_t kInline = 64;
constexpr diwarp::STag kWrongStag = 0x00000100;  // its upper 24 bits name nothing but by chance

}  // namespace

void Traffic::post_some() {
  if (process_.requests.posted() > Requests::kMost / 2) return;
  for (int i = 0; i < 6; ++i) {
    Line& line = process_.lines[process_.random.below(process_.lines.size())];
    if (line.state != Line::State::up || !line.qp) continue;
    const auto remote = line.type == QpType::rc
                            ? line.remote
                            : static_cast<uint32_t>(process_.random.below(kMostPeers));
    const diwarp::Address& address = process_.remotes[remote].addresses[index_of(line.type)];
    if (process_.remotes[remote].life == 0 || address.port() == 0)
      continue;  // it has no such queue pair
    const uint64_t burst = 1 + process_.random.below(4);
    for (uint64_t n = 0; n < burst; ++n) post_one(line, remote);
  }
  if (process_.random.chance(0.005)) withdraw_one();
}

void Traffic::post_one(Line& line, uint32_t remote) {
  const bool stream = line.type == QpType::rc;
  if (stream && process_.remotes[remote].life != line.remote_life) return;
  switch (process_.random.below(10)) {
    case 0:
    case 1:
    case 2:
      return post_message(line, remote, Operation::send);
    case 3:
    case 4:
    case 5:
      return post_write(line, remote);
    case 6:
    case 7:
      return post_read(line, remote);
    case 8:
      return stream ? post_atomic(line, remote) : post_message(line, remote, Operation::send);
    default:
      if (!stream || process_.random.chance(0.3)) return post_refused(line, remote);
      return process_.random.chance(0.5) ? post_immediate(line) : post_invalidate(line, remote);
  }
}

/// A wrong request must be refused. Over a connection that ends it, so it is rare there.
Wrong Traffic::pick_wrong(const Line& line) {
  if (!process_.random.chance(line.type == QpType::rc ? 0.0005 : 0.01)) return Wrong::nothing;
  return static_cast<Wrong>(1 + process_.random.below(3));
}

void Traffic::post_message(Line& line, uint32_t remote, Operation operation, const Lent* about,
                           uint64_t at, uint64_t written) {
  const bool plain = about == nullptr;
  const bool too_long = plain && pick_wrong(line) == Wrong::length;
  size_t length = too_long ? kReceiveSize + 1 + process_.random.below(4096)
                           : pick_size(process_.random, kReceiveSize);
  if (!plain) length = std::max(length, sizeof(Head));
  Request* request = posting_.prepare(line, remote, operation, length, Access::none);
  if (request == nullptr) return;
  Remote& to = process_.remotes[remote];
  uint64_t& sent = line.type == QpType::rc ? line.sent : to.sent[index_of(line.type)];
  const bool has_head = length >= sizeof(Head);
  Head head{.life = process_.settings.life,
            .from = static_cast<uint16_t>(process_.settings.index),
            .type = static_cast<uint8_t>(line.type),
            .operation = static_cast<uint8_t>(operation),
            .length = static_cast<uint32_t>(length),
            .number = sent + 1,
            .offer = plain ? 0 : about->id,
            .at = static_cast<uint32_t>(at),
            .written = static_cast<uint32_t>(written),
            .opened = line.opened};
  const std::span<std::byte> bytes = request->buffer.bytes();
  if (has_head) {
    std::memcpy(bytes.data(), &head, sizeof head);
    fill(bytes.subspan(sizeof head), process_.message_key(process_.settings.life, head, remote));
    request->number = head.number;
  } else {
    fill(bytes, process_.key(0, Kind::short_message, length));
  }
  if (too_long) request->wrong = Wrong::length;
  SendWorkRequest wr{.opcode = WrOpcode::send};
  if (length != 0) wr.sges = request->buffer.region().sge();
  if (operation == Operation::send_invalidate) {
    wr.opcode = WrOpcode::send_with_invalidate;
    wr.invalidate_stag = about->stag;
  }
  if (process_.random.chance(0.3)) wr.flags = wr.flags | SendFlags::solicited;
  if (line.type != QpType::rc && has_head && process_.random.chance(0.5))
    wr.immediate = process_.own_key(Kind::immediate, head.number);
  const bool copied = length <= kInline && process_.random.chance(0.5);
  if (copied) wr.flags = wr.flags | SendFlags::inline_data;
  const uint64_t id = request->id;
  if (!posting_.post(line, *request, wr)) return;
  if (has_head) sent = head.number;
  if (copied) fill(bytes, process_.own_key(Kind::scribble, id));  // it may be used again at once
}

void Traffic::post_immediate(Line& line) {
  Request* request = posting_.prepare(line, line.remote, Operation::immediate, 0, Access::none);
  if (request == nullptr) return;
  const uint64_t number = line.immediates_sent + 1;
  if (posting_.post(
          line, *request,
          {.opcode = WrOpcode::immediate, .immediate = process_.own_key(Kind::immediate, number)}))
    line.immediates_sent = number;
}

/// An offer is written to once. RC: a Send after the Write tells of it.
void Traffic::post_write(Line& line, uint32_t remote) {
  const Lent* found = borrowed_.pick(remote, line.type, Use::write);
  if (found == nullptr) return;
  const Lent lent = *found;
  const uint64_t at = process_.random.below(2) == 0 ? 0 : process_.random.below(lent.length + 1);
  const uint64_t length =
      lent.length - at - process_.random.below(2) * process_.random.below(lent.length - at + 1);
  const bool stream = line.type == QpType::rc;
  Request* request = posting_.prepare(
      line, remote, stream ? Operation::write : Operation::write_record, length, Access::none);
  if (request == nullptr) return;
  request->wrong = pick_wrong(line);
  request->offer = lent.id;
  if (length == 0 || request->wrong == Wrong::length) request->wrong = Wrong::nothing;
  // Over a connection each segment is checked by itself: those before the end are placed.
  const uint64_t place = request->wrong == Wrong::bounds ? lent.length - length + 1 : at;
  fill(request->buffer.bytes(), process_.key(process_.remotes[remote].life, Kind::written, lent.id),
       place);
  SendWorkRequest wr{.opcode = stream ? WrOpcode::rdma_write : WrOpcode::write_record,
                     .remote = {lent.stag, lent.base + place}};
  if (request->wrong == Wrong::stag) wr.remote.stag = kWrongStag;
  if (length != 0) wr.sges = request->buffer.region().sge();
  const bool refused = request->wrong != Wrong::nothing;
  if (!stream) wr.immediate = process_.key(process_.remotes[remote].life, Kind::immediate, lent.id);
  if (!posting_.post(line, *request, wr)) return;
  borrowed_.forget(remote, lent.id);
  if (stream && !refused) post_message(line, remote, Operation::tell, &lent, at, length);
}

void Traffic::post_read(Line& line, uint32_t remote) {
  Lent* lent = borrowed_.pick(remote, line.type, Use::read);
  if (lent == nullptr) return;
  const uint64_t at = process_.random.below(lent->length + 1);
  const uint64_t length =
      std::min<uint64_t>(lent->length - at, pick_size(process_.random, Arena::kLargest));
  Request* request = posting_.prepare(line, remote, Operation::read, length, Access::local_write);
  if (request == nullptr) return;
  request->wrong = length == 0 ? Wrong::nothing : pick_wrong(line);
  if (request->wrong == Wrong::length) request->wrong = Wrong::nothing;
  request->number = process_.next_number++;
  request->offer = lent->id;
  request->offer_life = process_.remotes[remote].life;
  request->at = at;
  fill(request->buffer.bytes(), process_.own_key(Kind::untouched, request->number));
  SendWorkRequest wr{.opcode = WrOpcode::rdma_read, .remote = {lent->stag, lent->base + at}};
  if (request->wrong == Wrong::stag) wr.remote.stag = kWrongStag;
  if (request->wrong == Wrong::bounds) wr.remote.offset = lent->base + lent->length - length + 1;
  if (length != 0) wr.sges = request->buffer.region().sge();
  if (line.type == QpType::rc && process_.random.chance(0.2))
    wr.flags = wr.flags | SendFlags::fence;
  if (posting_.post(line, *request, wr)) ++lent->readers;
}

/// This process alone uses the words of such an offer, so it knows what stands there.
void Traffic::post_atomic(Line& line, uint32_t remote) {
  Lent* lent = borrowed_.pick(remote, line.type, Use::atomic);
  if (lent == nullptr) return;
  const auto operation = static_cast<Operation>(static_cast<int>(Operation::fetch_add) +
                                                static_cast<int>(process_.random.below(3)));
  Request* request = posting_.prepare(line, remote, operation, 8, Access::local_write);
  if (request == nullptr) return;
  const size_t word = process_.random.below(lent->values.size());
  const uint64_t before = lent->values[word];
  request->value = before;
  request->offer = lent->id;
  request->offer_life = process_.remotes[remote].life;
  SendWorkRequest wr{.sges = request->buffer.region().sge(),
                     .remote = {lent->stag, lent->base + 8 * word}};
  wr.atomic.operand = process_.random.next();
  uint64_t after = wr.atomic.operand;
  if (operation == Operation::fetch_add) {
    wr.opcode = WrOpcode::fetch_add;
    after += before;
  } else if (operation == Operation::swap) {
    wr.opcode = WrOpcode::swap;
  } else {
    wr.opcode = WrOpcode::compare_swap;
    wr.atomic.compare = process_.random.chance(0.5) ? before : before + 1;
    if (wr.atomic.compare != before) after = before;
  }
  if (!posting_.post(line, *request, wr)) return;
  lent->values[word] = after;
  ++lent->readers;
}

void Traffic::post_invalidate(Line& line, uint32_t remote) {
  const Lent* found = borrowed_.pick(remote, line.type, Use::invalidate);
  if (found == nullptr) return;
  const Lent lent = *found;
  borrowed_.forget(remote, lent.id);
  post_message(line, remote, Operation::send_invalidate, &lent);
}

/// Requests that may not be posted, and what posting them answers.
void Traffic::post_refused(Line& line, uint32_t remote) {
  const bool stream = line.type == QpType::rc;
  const diwarp::Address to = process_.remotes[remote].addresses[index_of(line.type)];
  const std::array<diwarp::Sge, 5> many{};
  SendWorkRequest wr{.destination = to};
  Errc expected = Errc::too_many_sges;
  switch (process_.random.below(4)) {
    case 0:
      wr.sges = many;
      break;
    case 1:
      wr.opcode = stream ? WrOpcode::write_record : WrOpcode::fetch_add;
      expected = Errc::unsupported_operation;
      break;
    case 2:
      wr.sges = diwarp::Sge{refused_.data(), kInline + 1, 0};
      wr.flags = SendFlags::inline_data | SendFlags::signaled;
      expected = Errc::inline_too_large;
      break;
    default:
      if (stream) return;
      wr.destination = to.with_port(0);
      expected = Errc::invalid_destination;
  }
  const std::error_code error = line.qp->post_send(wr);
  process_.ledger.count("refused.posting");
  if (error == expected || posting_.refusal_allowed(error)) return;
  process_.ledger.finding("refusal", std::string(to_string(line.type)) + ": posting gave " +
                                         error.message() + " instead of " +
                                         make_error_code(expected).message());
}

/// Takes the registration away from something that is posted. Nobody may see bytes written into its
/// memory afterwards, and nobody may write there.
void Traffic::withdraw_one() {
  Request& request = process_.requests.places()[process_.random.below(Requests::kMost)];
  if (request.id == 0 || !request.buffer.registered() || request.buffer.bytes().empty()) return;
  const bool source = request.operation != Operation::receive &&
                      request.operation != Operation::read &&
                      request.operation < Operation::fetch_add;
  // Without copying, the kernel reads the memory until the completion (docs/rc.md).
  if (source && process_.handles.zerocopy) return;
  request.buffer.deregister();
  request.withdrawn = true;
  fill(request.buffer.bytes(), process_.own_key(Kind::scribble, request.id));
  process_.ledger.count("buffers-ended-in-use");
}

}  // namespace soak
