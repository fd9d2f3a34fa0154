// SPDX-License-Identifier: Apache-2.0
/// Completions, and whether they may be so.
#include <algorithm>
#include <cstring>

#include "soak/peer.h"

namespace soak {

using diwarp::QpState;
using diwarp::QpType;
using diwarp::WcOpcode;
using diwarp::WcStatus;
using diwarp::WorkCompletion;

namespace {

constexpr diwarp::Duration kWait = std::chrono::milliseconds(1);
constexpr size_t kMostFailed = 4096;

bool is_atomic(Operation operation) {
  return operation >= Operation::fetch_add && operation <= Operation::swap;
}
bool names_memory(Operation operation) {
  return operation == Operation::write_record || operation == Operation::read ||
         is_atomic(operation);
}

}  // namespace

uint64_t Peer::message_key(uint32_t life, const Head& head, uint32_t to) const {
  return key(life, Kind::message, head.number * 64 + head.type * 16 + to);
}

void Peer::wrong_byte(const std::string& where, std::span<const std::byte> memory, size_t at) {
  ledger_.finding("wrong-byte", "byte " + std::to_string(at) + " of " +
                                    std::to_string(memory.size()) + " is wrong: " + where);
}

void Peer::take_completions() {
  take_from(cq_, kWait);
  take_from(shared_cq_, diwarp::Duration(0));
}

void Peer::take_from(diwarp::CompletionQueue& cq, diwarp::Duration wait) {
  std::array<WorkCompletion, 32> batch;
  size_t count = cq.poll(batch, wait);
  for (int more = 0; count != 0 && more < 8; ++more) {
    for (size_t i = 0; i < count; ++i) take(batch[i]);
    count = cq.poll(batch);
  }
  for (size_t i = 0; i < count; ++i) take(batch[i]);
}

/// Of a shared receive: the line that took it, or the shared receives' own if that is gone.
Line& Peer::line_of_receive(const Request& request, const WorkCompletion& wc) {
  for (Line& line : lines_) {
    if (request.line == kSharedPlace && line.qp && line.qp->number() == wc.qp_number) return line;
  }
  return lines_[request.line];
}

void Peer::take(const WorkCompletion& wc) {
  if (wc.opcode == WcOpcode::recv_write_record) return record_came(wc);
  Request* request = requests_.find(wc.wr_id);
  if (request == nullptr) {
    if (!requests_.was_dropped(wc.wr_id))
      ledger_.finding("twice",
                      "a completion came for no request: wr_id " + std::to_string(wc.wr_id));
    return;
  }
  Line& line = lines_[request->line];
  const bool receive = request->operation == Operation::receive;
  if (planted("stuck") && !receive && rounds_ >= 2 && !planted_once_) {
    planted_once_ = true;
    return;
  }
  --(receive ? line.receives : line.sends);
  if (line.place == kSharedPlace) ledger_.count("shared");
  Line& taker = line_of_receive(*request, wc);
  check_status(taker, *request, wc);
  receive ? receive_done(taker, *request, wc) : send_done(line, *request, wc);
  check_withdrawn(*request);
  requests_.release(*request);
}

void Peer::check_status(Line& line, const Request& request, const WorkCompletion& wc) {
  const std::string name =
      std::string(to_string(line.type)) + "." + std::string(to_string(request.operation));
  ledger_.count("done." + name);
  if (wc.status != WcStatus::success)
    ledger_.count("failed." + name + "." + std::string(to_string(wc.status)));
  if (status_allowed(line, request, wc.status)) return;
  ledger_.finding("status", name + " of " + std::to_string(request.buffer.bytes().size()) +
                                " bytes ended with '" + std::string(to_string(wc.status)) +
                                "' (vendor_error " + std::to_string(wc.vendor_error) + ", wrong " +
                                std::to_string(static_cast<int>(request.wrong)) + ", withdrawn " +
                                std::to_string(request.withdrawn) + "; " + describe(line) + ")");
}

/// docs/rc.md and docs/datagrams.md, "Errors".
bool Peer::status_allowed(const Line& line, const Request& request, WcStatus status) const {
  const bool receive = request.operation == Operation::receive;
  const bool reads = request.operation == Operation::read || is_atomic(request.operation);
  const bool stream = line.type == QpType::rc, reliable = line.type == QpType::rd;
  const bool refused_aloud = request.wrong != Wrong::nothing && (reliable || reads);
  switch (status) {
    case WcStatus::success:
      return !refused_aloud;
    case WcStatus::wr_flush_error:
      return !line.qp || line.qp->state() == QpState::error ||  // gone: it had begun a shared one
             line.qp->state() == QpState::closing;
    case WcStatus::window_bind_error:  // its region has gone
      return std::ranges::find(offers_, request.offer, &Offer::id) == offers_.end();
    case WcStatus::local_protection_error:
      return request.withdrawn;
    case WcStatus::local_qp_operation_error:
      return !stream && (limited() || !receive);
    case WcStatus::local_length_error:
    case WcStatus::general_error:
      return stream;
    case WcStatus::remote_access_error:
      return !receive && (reads || (reliable && names_memory(request.operation)));
    case WcStatus::remote_operation_error:
      return !receive && (reads || (reliable && request.wrong == Wrong::length));
    case WcStatus::timeout:
      return line.type == QpType::ud && reads;
    case WcStatus::retry_exceeded:
    case WcStatus::peer_restarted:
      return reliable && !receive;
    default:
      return false;
  }
}

/// Nothing was written into memory after it was deregistered.
void Peer::check_withdrawn(const Request& request) {
  if (!request.withdrawn) return;
  const auto wrong = first_wrong(request.buffer.bytes(), own_key(Kind::scribble, request.id));
  if (wrong)
    wrong_byte("deregistered memory of " + std::string(to_string(request.operation)),
               request.buffer.bytes(), *wrong);
}

void Peer::note_failed(const Request& request) {
  Remote& remote = remotes_[request.remote];
  if (request.line != 1 || request.operation != Operation::send || request.number == 0 ||
      remote.life != request.remote_life)
    return;
  remote.failed.insert(request.number);
  if (remote.failed.size() > kMostFailed) remote.failed.erase(remote.failed.begin());
}

void Peer::note_written(const Request& request) {
  Remote& remote = remotes_[request.remote];
  if (remote.life != request.remote_life) return;
  remote.written.insert(request.offer);
  if (remote.written.size() > kMostFailed) remote.written.erase(remote.written.begin());
}

void Peer::receive_done(Line& line, Request& request, const WorkCompletion& wc) {
  if (wc.status != WcStatus::success) return;
  if (wc.opcode == WcOpcode::recv_immediate) return immediate_came(line, wc);
  if (request.withdrawn) return unread_came(line, wc);
  message_came(line, wc, request.buffer.bytes().first(wc.byte_count));
}

/// The memory of a message went, and was scribbled on, between its end and its completion.
void Peer::unread_came(Line& line, const WorkCompletion& wc) {
  if (wc.byte_count < sizeof(Head)) return;
  if (line.type == QpType::rc) {
    ++line.heard;
    return;
  }
  // Its sender and number stood in its bytes: any remote may seem to leave a number out next.
  forget_heard(line.type);
}

void Peer::message_came(Line& line, const WorkCompletion& wc, std::span<std::byte> bytes) {
  if (planted("wrong-byte") && rounds_ >= 2 && !planted_once_ && bytes.size() > 100) {
    planted_once_ = true;
    bytes[99] ^= std::byte{1};
  }
  const std::string name = "a message over " + std::string(to_string(line.type));
  if (bytes.size() < sizeof(Head)) {
    const auto wrong = first_wrong(bytes, key(0, Kind::short_message, bytes.size()));
    if (wrong) wrong_byte(name, bytes, *wrong);
    return ledger_.verified(bytes.size());
  }
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != Head::kMagic || head.length != bytes.size() ||
      head.type != static_cast<uint8_t>(line.type))
    return wrong_byte(name + " (its head)", bytes, 0);
  const auto wrong =
      first_wrong(bytes.subspan(sizeof head), message_key(head.life, head, settings_.index));
  if (wrong) return wrong_byte(name, bytes, sizeof head + *wrong);
  if (wc.has_immediate && wc.immediate != key(head.life, Kind::immediate, head.number))
    wrong_byte(name + " (its immediate data)", bytes, 0);
  ledger_.verified(bytes.size());
  if (loses(line)) return;
  line.type == QpType::rc ? numbered(line, head) : numbered_datagram(line, head);
  if (head.operation == static_cast<uint8_t>(Operation::tell)) told(line, head);
  if (head.operation == static_cast<uint8_t>(Operation::send_invalidate)) invalidated(head, wc);
}

void Peer::immediate_came(Line& line, const WorkCompletion& wc) {
  if (line.place == kSharedPlace) return;  // its connection is gone
  const uint64_t number = ++line.immediates_heard;
  if (wc.immediate != key(line.remote_life, Kind::immediate, number))
    ledger_.finding("wrong-byte",
                    "RC: immediate data " + std::to_string(number) + " of a connection are wrong");
  ledger_.verified(sizeof wc.immediate);
}

/// A planted fault: a message that came is forgotten. One in twenty, for what follows on one alone
/// may end before it shows.
bool Peer::loses(const Line& line) {
  const bool meant =
      (planted("shared-lost") && line.shares) || (planted("lost") && line.type == QpType::rd);
  return meant && rounds_ >= 2 && planted_losses_++ % 20 == 0;
}

/// Over a connection each message comes, in the order of posting.
void Peer::numbered(Line& line, const Head& head) {
  if (line.place == kSharedPlace) return;  // its connection is gone
  if (head.number != line.heard + 1)
    ledger_.finding("order", "RC: message " + std::to_string(head.number) + " came after " +
                                 std::to_string(line.heard));
  line.heard = head.number;
}

/// RD: in order, and what is left out was not reported as delivered. UD: none twice. A message that
/// waits for a receive may come after messages of the source that its sender has become since.
void Peer::numbered_datagram(Line& line, const Head& head) {
  if (head.from >= kMostPeers) return;
  Heard& heard = remotes_[head.from].heard[index_of(line.type)];
  if (remotes_[head.from].life != head.life) return;  // of one that is gone, or not known yet
  const bool reliable = line.type == QpType::rd;
  const bool known = heard.life == head.life;
  if (known && head.opened < heard.opened) return;
  if (!known || head.opened > heard.opened)
    heard = {.life = head.life, .opened = head.opened, .newest = head.number - 1, .seen = {}};
  if (reliable && head.number <= heard.newest)
    ledger_.finding("order", "RD: message " + std::to_string(head.number) + " came after " +
                                 std::to_string(heard.newest));
  if (reliable) {
    for (uint64_t number = heard.newest + 1; number < head.number && number > heard.newest;
         ++number)
      tell(head.from, "gap " + std::to_string(number));
    heard.newest = std::max(heard.newest, head.number);
    return;
  }
  for (; heard.newest < head.number; ++heard.newest)
    heard.seen.reset((heard.newest + 1) % heard.seen.size());
  if (heard.newest - head.number >= heard.seen.size()) return;
  if (heard.seen.test(head.number % heard.seen.size()))
    ledger_.finding("twice", "UD: message " + std::to_string(head.number) + " came twice");
  heard.seen.set(head.number % heard.seen.size());
}

/// Once the Send after a Write is here, all bytes of the Write are.
void Peer::told(Line& line, const Head& head) {
  Offer* offer = find_offer(head.offer);
  if (offer == nullptr || offer->remote_life != line.remote_life) return;
  offer->written = true;
  offer->begin = head.at;
  offer->end = uint64_t{head.at} + head.written;
  check_told(*offer);
  ledger_.count("written.RC");
  offer->asked_back = true;
  if (random_.chance(0.8)) offer->until = 0;  // the others are looked at again later
}

void Peer::invalidated(const Head& head, const WorkCompletion& wc) {
  Offer* offer = find_offer(head.offer);
  if (offer == nullptr || !offer->buffer.registered()) return;
  if (!wc.invalidated || wc.invalidated_stag != offer->stag || offer->valid())
    ledger_.finding("status", "RC: a Send with Invalidate left its STag valid");
  offer->asked_back = true;
  offer->until = 0;
}

void Peer::record_came(const WorkCompletion& wc) {
  const auto found = std::ranges::find(offers_, wc.stag, &Offer::stag);
  // A record that was open when its region went may be reported later.
  if (found == offers_.end() || found->use != Use::write || !found->buffer.registered()) return;
  Offer& offer = *found;
  const std::span<const std::byte> bytes = offer.buffer.bytes();
  const uint64_t at = wc.tagged_offset - offer.base;
  const std::string name = "a Write-Record over " + std::string(to_string(offer.type));
  ledger_.count("written." + std::string(to_string(offer.type)));
  if (at > bytes.size() || wc.byte_count > bytes.size() - at)
    return wrong_byte(name + " (its place)", bytes, 0);
  if (!wc.has_immediate || wc.immediate != own_key(Kind::immediate, offer.id))
    wrong_byte(name + " (its immediate data)", bytes, at);
  const uint64_t written = own_key(Kind::written, offer.id);
  for (const auto range : wc.validity.ranges()) {
    const auto wrong =
        first_wrong(bytes.subspan(at + range.offset, range.length), written, at + range.offset);
    if (wrong) wrong_byte(name, bytes, at + range.offset + *wrong);
  }
  const uint64_t before = own_key(Kind::untouched, offer.id);
  for (const auto gap : wc.validity.gaps()) {
    const auto wrong =
        first_wrong(bytes.subspan(at + gap.offset, gap.length), before, at + gap.offset);
    if (wrong) wrong_byte(name + " (a gap)", bytes, at + gap.offset + *wrong);
  }
  ledger_.verified(wc.valid_bytes);
  // A record over RD ends early where its source has given it up.
  if (offer.type == QpType::rd && !wc.validity.complete()) {
    ledger_.count("partial.rd");
    tell(offer.remote, "partial " + std::to_string(offer.id));
  }
  offer.written = wc.validity.complete();
  offer.begin = at;
  offer.end = at + wc.byte_count;
  offer.asked_back = true;
  if (random_.chance(0.8)) offer.until = 0;
}

void Peer::send_done(Line& line, Request& request, const WorkCompletion& wc) {
  const bool success = wc.status == WcStatus::success;
  if (request.operation == Operation::bind_window) return window_bound(request.offer, success);
  if (request.operation == Operation::read && !request.withdrawn) read_done(request, wc);
  if (is_atomic(request.operation) && success && !request.withdrawn) {
    uint64_t before = 0;
    std::memcpy(&before, request.buffer.bytes().data(), sizeof before);
    if (before != request.value)
      ledger_.finding("wrong-byte", "RC: " + std::string(to_string(request.operation)) + " found " +
                                        std::to_string(before) + " instead of " +
                                        std::to_string(request.value));
    ledger_.verified(sizeof before);
  }
  if (success && request.passed_over && line.type == QpType::rd)
    ledger_.finding("lost", "RD: " + std::string(to_string(request.operation)) + " " +
                                std::to_string(request.number) +
                                " was reported as delivered, and was not, or in part");
  if (!success) note_failed(request);
  if (success && line.type == QpType::rd && request.operation == Operation::write_record)
    note_written(request);
  release_reader(request);
}

/// Valid bytes are the peer's; all others are as they were, or the peer's.
void Peer::read_done(Request& request, const WorkCompletion& wc) {
  const std::span<const std::byte> bytes = request.buffer.bytes();
  const uint64_t theirs = key(request.offer_life, Kind::readable, request.offer);
  const bool success = wc.status == WcStatus::success;
  const auto check = [&](uint64_t at, uint64_t length) {
    const auto wrong = first_wrong(bytes.subspan(at, length), theirs, request.at + at);
    if (wrong)
      wrong_byte("a Read over " + std::string(to_string(lines_[request.line].type)), bytes,
                 at + *wrong);
    ledger_.verified(length);
  };
  if (success) return check(0, bytes.size());
  if (wc.status == WcStatus::timeout) {
    for (const auto range : wc.validity.ranges()) check(range.offset, range.length);
  }
  // Of one that reaches beyond the offer the first parts may come, from elsewhere in it.
  if (request.wrong == Wrong::bounds) return;
  const uint64_t before = own_key(Kind::untouched, request.number);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != byte_at(before, i) && bytes[i] != byte_at(theirs, request.at + i))
      return wrong_byte("the memory of a Read that failed", bytes, i);
  }
}

}  // namespace soak
