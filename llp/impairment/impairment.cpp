// SPDX-License-Identifier: Apache-2.0
#include "llp/impairment/impairment.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <new>

namespace diwarp::llp {
namespace {

bool any_probability(const Impairment& impairment) {
  return impairment.drop > 0 || impairment.corrupt > 0 || impairment.truncate > 0 ||
         impairment.duplicate > 0 || impairment.reorder > 0;
}

bool has_delay(const Impairment& impairment) {
  return impairment.delay > Duration{0} || impairment.jitter > Duration{0};
}

}  // namespace

DropRule drop_nth(uint64_t n) {
  return [n](uint64_t index, ConstBytes) { return index == n; };
}

DropRule drop_every(uint64_t n) {
  return [n](uint64_t index, ConstBytes) { return n != 0 && index % n == n - 1; };
}

DropRule drop_bitmap(std::vector<bool> pattern) {
  return [pattern = std::move(pattern)](uint64_t index, ConstBytes) {
    return index < pattern.size() && pattern[index];
  };
}

DropRule drop_opcode(size_t offset, uint8_t mask, uint8_t value) {
  return [=](uint64_t, ConstBytes datagram) {
    if (offset >= datagram.size()) return false;
    return (std::to_integer<unsigned>(datagram[offset]) & mask) == value;
  };
}

DropRule drop_nth_match(DropRule rule, uint64_t n) {
  return
      [rule = std::move(rule), n, met = uint64_t{0}](uint64_t index, ConstBytes datagram) mutable {
        return rule(index, datagram) && met++ == n;
      };
}

ImpairedDatagramLink::ImpairedDatagramLink(std::unique_ptr<DatagramLink> inner,
                                           Impairment impairment, Clock& clock,
                                           DatagramObserver observer)
    : ForwardingDatagramLink(std::move(inner)),
      impairment_(std::move(impairment)),
      clock_(clock),
      observer_(std::move(observer)),
      delays_(has_delay(impairment_)),
      acts_(delays_ || any_probability(impairment_) || impairment_.drop_if || observer_),
      random_(impairment_.seed),
      scratch_(acts_ ? kMaxDatagram : 0) {}

SendResult ImpairedDatagramLink::send(std::span<const OutgoingDatagram> burst) {
  if (!acts_) return inner().send(burst);
  release_due();
  SendResult result;
  while (result.sent < burst.size() && result.status == SendStatus::ok) {
    const auto rest = burst.subspan(result.sent);
    const size_t run = passing(rest);
    const SendResult step = run > 0 ? inner().send(rest.first(run)) : impair(rest.front());
    for (size_t i = 0; i < step.sent; ++i) accept(rest[i]);
    // The sender skips a refused datagram, so the decision for it is void.
    if (step.status == SendStatus::refused) next_datagram();
    result = {result.sent + step.sent, step.status, step.error};
    release_overtaken(false);
    release_due();
  }
  return result;
}

size_t ImpairedDatagramLink::receive(ReceiveBatch& batch) {
  release_due();
  return inner().receive(batch);
}

size_t ImpairedDatagramLink::flush() {
  release_overtaken(true);
  release_until(Time::max());
  return queued();
}

/// How many datagrams at the front of the burst pass unharmed and may go together: no more than
/// bring the next one that is being overtaken to its turn.
size_t ImpairedDatagramLink::passing(std::span<const OutgoingDatagram> burst) {
  size_t limit = std::min(burst.size(), kLookAhead);
  if (!overtaken_.empty()) {
    limit = std::min<uint64_t>(limit, overtaken_.front()->overtaken_at - index_);
  }
  size_t count = 0;
  while (count < limit && decision(count, burst[count]).verdict == Verdict::passed) ++count;
  return count;
}

/// The decision for the datagram that is `ahead` of the next one; decided once, so that a
/// datagram which the inner link had no room for meets the same fate when it comes again.
ImpairedDatagramLink::Decision& ImpairedDatagramLink::decision(size_t ahead,
                                                               const OutgoingDatagram& datagram) {
  const uint64_t index = index_ + ahead;
  Decision& slot = decisions_[index % kLookAhead];
  if (index == decided_) {
    slot = decide(index, datagram);
    ++decided_;
  }
  return slot;
}

/// Draws as many numbers for one datagram as for any other, so that what becomes of one does not
/// change what becomes of the next.
ImpairedDatagramLink::Decision ImpairedDatagramLink::decide(uint64_t index,
                                                            const OutgoingDatagram& datagram) {
  Decision result;
  result.verdict = draw_verdict();
  result.place = random_.next();
  result.delay = impairment_.delay;
  result.delay += Duration(
      static_cast<Duration::rep>(random_.unit() * static_cast<double>(impairment_.jitter.count())));
  if (impairment_.drop_if && impairment_.drop_if(index, gather(datagram))) {
    result.verdict = Verdict::dropped;
  }
  // Nothing to change in an empty one.
  const bool changes = result.verdict == Verdict::corrupted || result.verdict == Verdict::truncated;
  if (changes && datagram.size() == 0) result.verdict = Verdict::passed;
  if (result.verdict == Verdict::passed && delays_) result.verdict = Verdict::delayed;
  return result;
}

Verdict ImpairedDatagramLink::draw_verdict() {
  const std::array<std::pair<double, Verdict>, 5> chances = {{
      {impairment_.drop, Verdict::dropped},
      {impairment_.corrupt, Verdict::corrupted},
      {impairment_.truncate, Verdict::truncated},
      {impairment_.duplicate, Verdict::duplicated},
      {impairment_.reorder, Verdict::reordered},
  }};
  Verdict result = Verdict::passed;
  for (const auto& [probability, verdict] : chances) {
    const bool strikes = random_.chance(probability);
    if (strikes && result == Verdict::passed) result = verdict;
  }
  return result;
}

SendResult ImpairedDatagramLink::impair(const OutgoingDatagram& datagram) {
  Decision& fate = decision(0, datagram);
  if (fate.verdict == Verdict::dropped) return {1, SendStatus::ok, 0};
  if (fate.verdict == Verdict::passed) return inner().send({&datagram, 1});
  ConstBytes bytes = gather(datagram);
  if (fate.verdict == Verdict::corrupted) {
    // Without another copy: gather() always makes one.
    scratch_[fate.place / 8 % bytes.size()] ^= std::byte{1} << (fate.place % 8);
  } else if (fate.verdict == Verdict::truncated) {
    bytes = bytes.first(fate.place % bytes.size());
  }
  const size_t copies = fate.verdict == Verdict::duplicated ? 2 : 1;
  if (fate.verdict != Verdict::reordered && !delays_)
    return emit(datagram.destination(), bytes, copies);
  const bool has_room = queued() + copies <= impairment_.queue_limit;
  if (!has_room || !queue(fate, datagram.destination(), bytes)) {
    fate.verdict = Verdict::dropped;
  } else if (copies == 2) {
    static_cast<void>(queue(fate, datagram.destination(), bytes));  // as in emit()
  }
  return {1, SendStatus::ok, 0};
}

SendResult ImpairedDatagramLink::emit(const Destination& to, ConstBytes bytes, size_t copies) {
  const OutgoingDatagram datagram = {to.address, {&bytes, 1}, to.local};
  const SendResult first = inner().send({&datagram, 1});
  if (first.status == SendStatus::ok && copies == 2) {
    // A copy that finds no room is lost, as on any wire.
    static_cast<void>(inner().send({&datagram, 1}));
  }
  return first;
}

void ImpairedDatagramLink::accept(const OutgoingDatagram& datagram) {
  if (observer_) observer_(gather(datagram), decision(0, datagram).verdict);
  next_datagram();
}

void ImpairedDatagramLink::next_datagram() {
  ++index_;
  decided_ = std::max(decided_, index_);
}

ConstBytes ImpairedDatagramLink::gather(const OutgoingDatagram& datagram) {
  const size_t size = datagram.size();
  assert(size <= scratch_.size());
  auto target = scratch_.begin();
  for (ConstBytes piece : datagram.pieces) target = std::copy(piece.begin(), piece.end(), target);
  return ConstBytes(scratch_).first(size);
}

/// False, and nothing has changed, where there is no memory.
bool ImpairedDatagramLink::queue(const Decision& fate, const Destination& to,
                                 ConstBytes bytes) noexcept try {
  if (free_.empty()) grow();
  QueuedDatagram* datagram = free_.back();
  datagram->bytes.assign(bytes.begin(), bytes.end());
  free_.pop_back();
  datagram->to = to;
  datagram->delay = fate.delay;
  if (fate.verdict == Verdict::reordered) {
    datagram->overtaken_at = index_ + 1 + impairment_.reorder_depth;
    overtaken_.push_back(datagram);
  } else {
    schedule(datagram);
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void ImpairedDatagramLink::grow() {
  const size_t size = std::max<size_t>(16, 2 * pool_.size());
  pool_.reserve(size);
  free_.reserve(size);
  overtaken_.reserve(size);
  due_.reserve(size);
  while (pool_.size() < size) {
    free_.push_back(pool_.emplace_back(std::make_unique<QueuedDatagram>()).get());
  }
}

void ImpairedDatagramLink::schedule(QueuedDatagram* datagram) {
  datagram->due = delays_ ? clock_.now() + datagram->delay : Time::min();
  datagram->order = next_order_++;
  due_.push_back(datagram);
  std::push_heap(due_.begin(), due_.end(), later);
}

void ImpairedDatagramLink::release_overtaken(bool all) {
  auto end = overtaken_.begin();
  for (; end != overtaken_.end() && (all || (*end)->overtaken_at <= index_); ++end) schedule(*end);
  overtaken_.erase(overtaken_.begin(), end);
}

void ImpairedDatagramLink::release_due() {
  if (!due_.empty()) release_until(delays_ ? clock_.now() : Time::min());
}

void ImpairedDatagramLink::release_until(Time now) {
  while (!due_.empty() && due_.front()->due <= now) {
    QueuedDatagram* datagram = due_.front();
    if (emit(datagram->to, datagram->bytes, 1).status == SendStatus::would_block) return;
    std::pop_heap(due_.begin(), due_.end(), later);
    due_.pop_back();
    free_.push_back(datagram);
  }
}

bool ImpairedDatagramLink::later(const QueuedDatagram* a, const QueuedDatagram* b) {
  return a->due != b->due ? a->due > b->due : a->order > b->order;
}

}  // namespace diwarp::llp
