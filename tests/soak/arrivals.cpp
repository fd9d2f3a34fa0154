// SPDX-License-Identifier: Apache-2.0
#include "soak/arrivals.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace soak {

using diwarp::QpType;
using diwarp::WcOpcode;
using diwarp::WcStatus;
using diwarp::WorkCompletion;

void Arrivals::receive_done(Line& line, Request& request, const WorkCompletion& wc) {
  if (wc.status != WcStatus::success) return;
  if (wc.opcode == WcOpcode::recv_immediate) return immediate_came(line, wc);
  if (request.withdrawn) return unread_came(line, wc);
  message_came(line, wc, request.buffer.bytes().first(wc.byte_count));
}

void Arrivals::record_came(const WorkCompletion& wc) {
  const auto found = std::ranges::find(process_.offers, wc.stag, &Offer::stag);
  // A record that was open when its region went may be reported later.
  if (found == process_.offers.end() || found->use != Use::write || !found->buffer.registered())
    return;
  Offer& offer = *found;
  const std::span<const std::byte> bytes = offer.buffer.bytes();
  const uint64_t at = wc.tagged_offset - offer.base;
  const std::string name = "a Write-Record over " + std::string(to_string(offer.type));
  process_.ledger.count("written." + std::string(to_string(offer.type)));
  if (at > bytes.size() || wc.byte_count > bytes.size() - at)
    return process_.ledger.wrong_byte(name + " (its place)", bytes, 0);
  if (!wc.has_immediate || wc.immediate != process_.own_key(Kind::immediate, offer.id))
    process_.ledger.wrong_byte(name + " (its immediate data)", bytes, at);
  const uint64_t written = process_.own_key(Kind::written, offer.id);
  for (const auto range : wc.validity.ranges()) {
    const auto wrong =
        first_wrong(bytes.subspan(at + range.offset, range.length), written, at + range.offset);
    if (wrong) process_.ledger.wrong_byte(name, bytes, at + range.offset + *wrong);
  }
  const uint64_t before = process_.own_key(Kind::untouched, offer.id);
  for (const auto gap : wc.validity.gaps()) {
    const auto wrong =
        first_wrong(bytes.subspan(at + gap.offset, gap.length), before, at + gap.offset);
    if (wrong) process_.ledger.wrong_byte(name + " (a gap)", bytes, at + gap.offset + *wrong);
  }
  process_.ledger.verified(wc.valid_bytes);
  // A record over RD ends early where its source has given it up.
  if (offer.type == QpType::rd && !wc.validity.complete()) {
    process_.ledger.count("partial.rd");
    process_.tell(offer.remote, "partial " + std::to_string(offer.id));
  }
  offer.written = wc.validity.complete();
  offer.begin = at;
  offer.end = at + wc.byte_count;
  offer.asked_back = true;
  if (process_.random.chance(0.8)) offer.until = 0;
}

/// The memory of a message went, and was scribbled on, between its end and its completion.
void Arrivals::unread_came(Line& line, const WorkCompletion& wc) {
  if (wc.byte_count < sizeof(Head)) return;
  if (line.type == QpType::rc) {
    ++line.heard;
    return;
  }
  // Its sender and number stood in its bytes: any remote may seem to leave a number out next.
  process_.forget_heard(line.type);
}

void Arrivals::message_came(Line& line, const WorkCompletion& wc, std::span<std::byte> bytes) {
  if (bytes.size() > 100 && process_.faults.happens_once("wrong-byte")) bytes[99] ^= std::byte{1};
  const std::string name = "a message over " + std::string(to_string(line.type));
  if (bytes.size() < sizeof(Head)) {
    const auto wrong = first_wrong(bytes, process_.key(0, Kind::short_message, bytes.size()));
    if (wrong) process_.ledger.wrong_byte(name, bytes, *wrong);
    return process_.ledger.verified(bytes.size());
  }
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != Head::kMagic || head.length != bytes.size() ||
      head.type != static_cast<uint8_t>(line.type))
    return process_.ledger.wrong_byte(name + " (its head)", bytes, 0);
  const auto wrong = first_wrong(bytes.subspan(sizeof head),
                                 process_.message_key(head.life, head, process_.settings.index));
  if (wrong) return process_.ledger.wrong_byte(name, bytes, sizeof head + *wrong);
  if (wc.has_immediate && wc.immediate != process_.key(head.life, Kind::immediate, head.number))
    process_.ledger.wrong_byte(name + " (its immediate data)", bytes, 0);
  process_.ledger.verified(bytes.size());
  if (process_.faults.loses(line)) return;
  line.type == QpType::rc ? numbered(line, head) : numbered_datagram(line, head);
  if (head.operation == static_cast<uint8_t>(Operation::tell)) told(line, head);
  if (head.operation == static_cast<uint8_t>(Operation::send_invalidate)) invalidated(head, wc);
}

void Arrivals::immediate_came(Line& line, const WorkCompletion& wc) {
  if (line.place == kSharedPlace) return;  // its connection is gone
  const uint64_t number = ++line.immediates_heard;
  if (wc.immediate != process_.key(line.remote_life, Kind::immediate, number))
    process_.ledger.finding("wrong-byte", "RC: immediate data " + std::to_string(number) +
                                              " of a connection are wrong");
  process_.ledger.verified(sizeof wc.immediate);
}

/// Over a connection each message comes, in the order of posting.
void Arrivals::numbered(Line& line, const Head& head) {
  if (line.place == kSharedPlace) return;  // its connection is gone
  if (head.number != line.heard + 1)
    process_.ledger.finding("order", "RC: message " + std::to_string(head.number) + " came after " +
                                         std::to_string(line.heard));
  line.heard = head.number;
}

/// RD: in order, and what is left out was not reported as delivered. UD: none twice. A message that
/// waits for a receive may come after messages of the source that its sender has become since.
void Arrivals::numbered_datagram(Line& line, const Head& head) {
  if (head.from >= kMostPeers) return;
  Heard& heard = process_.remotes[head.from].heard[index_of(line.type)];
  if (process_.remotes[head.from].life != head.life)
    return;  // of one that is gone, or not known yet
  const bool reliable = line.type == QpType::rd;
  const bool known = heard.life == head.life;
  if (known && head.opened < heard.opened) return;
  if (!known || head.opened > heard.opened)
    heard = {.life = head.life, .opened = head.opened, .newest = head.number - 1, .seen = {}};
  if (reliable && head.number <= heard.newest)
    process_.ledger.finding("order", "RD: message " + std::to_string(head.number) + " came after " +
                                         std::to_string(heard.newest));
  if (reliable) {
    for (uint64_t number = heard.newest + 1; number < head.number && number > heard.newest;
         ++number)
      process_.tell(head.from, "gap " + std::to_string(number));
    heard.newest = std::max(heard.newest, head.number);
    return;
  }
  for (; heard.newest < head.number; ++heard.newest)
    heard.seen.reset((heard.newest + 1) % heard.seen.size());
  if (heard.newest - head.number >= heard.seen.size()) return;
  if (heard.seen.test(head.number % heard.seen.size()))
    process_.ledger.finding("twice", "UD: message " + std::to_string(head.number) + " came twice");
  heard.seen.set(head.number % heard.seen.size());
}

/// Once the Send after a Write is here, all bytes of the Write are.
void Arrivals::told(Line& line, const Head& head) {
  Offer* offer = offers_.find(head.offer);
  if (offer == nullptr || offer->remote_life != line.remote_life) return;
  offer->written = true;
  offer->begin = head.at;
  offer->end = uint64_t{head.at} + head.written;
  offers_.check_told(*offer);
  process_.ledger.count("written.RC");
  offer->asked_back = true;
  if (process_.random.chance(0.8)) offer->until = 0;  // the others are looked at again later
}

void Arrivals::invalidated(const Head& head, const WorkCompletion& wc) {
  Offer* offer = offers_.find(head.offer);
  if (offer == nullptr || !offer->buffer.registered()) return;
  if (!wc.invalidated || wc.invalidated_stag != offer->stag || offer->valid())
    process_.ledger.finding("status", "RC: a Send with Invalidate left its STag valid");
  offer->asked_back = true;
  offer->until = 0;
}

}  // namespace soak
