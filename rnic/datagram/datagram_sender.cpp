// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/datagram_sender.h"

#include <algorithm>
#include <cassert>

#include "dgram/identity.h"

namespace diwarp::rnic {

// --- What an origin sees of the burst.

bool DatagramRoom::open() const { return !closed_ && !burst_.full() && pacer_.may_send(); }

size_t DatagramRoom::max_body(const Address& to) {
  const size_t path = link_.max_datagram(to);
  return dgram::Envelope::max_body(segment_ == 0 ? path : std::min<size_t>(segment_, path));
}

void DatagramRoom::add(const llp::Destination& to, const Kind& kind, size_t header_bytes,
                       size_t payload_pieces, const DatagramMark& mark) {
  const size_t front = dgram::Envelope::kPrefixBytes + header_bytes;
  const size_t bytes =
      dgram::Envelope::seal({kind.datagram_class, kind.flags, identity_.incarnation(to.address)},
                            burst_.header().first(front),
                            burst_.payload_pieces().first(payload_pieces), burst_.trailer(front));
  burst_.add(to, front, payload_pieces, bytes, mark);
  pacer_.spend(bytes);
}

// --- The sender.

void DatagramSender::add(DatagramOrigin& origin) {
  assert(count_ < kMaxOrigins);
  origins_[count_++] = &origin;
}

Served DatagramSender::run(DatagramBurst& burst, llp::DatagramLink& link, Counters& counters,
                           Time now) {
  if (pacer_.limited()) pacer_.refill(now);
  burst.clear();
  bool more = fill(burst, link, now);
  // An origin may have put something in line for one that was asked before.
  if (burst.size() == 0) more = fill(burst, link, now);
  paced_ = !pacer_.may_send();
  if (burst.size() == 0) return {};
  const llp::SendResult result = link.send(burst.datagrams());
  book(burst, result.sent, counters);
  Served served{result.sent, more && !paced_ ? Pending::more : Pending::nothing};
  if (result.status == llp::SendStatus::refused) {
    const DatagramMark mark = burst.mark(result.sent);
    counters.add(Counter::tx_errors);
    mark.origin->refused(mark, result.error);
    served.pending = Pending::more;
  } else if (result.status == llp::SendStatus::would_block) {
    counters.add(Counter::tx_would_block);
    served.pending = Pending::writable;
  }
  return served;
}

bool DatagramSender::fill(DatagramBurst& burst, llp::DatagramLink& link, Time now) {
  DatagramRoom room(burst, link, pacer_, identity_, segment_);
  for (size_t i = 0; i < count_ && room.open(); ++i)
    origins_[(first_ + i) % count_]->fill(room, now);
  first_ = (first_ + 1) % count_;
  return burst.full() || room.closed();
}

/// Tells the origins what was sent. What was not comes again.
void DatagramSender::book(const DatagramBurst& burst, size_t sent, Counters& counters) {
  const std::span<const llp::OutgoingDatagram> datagrams = burst.datagrams();
  for (size_t index = sent; index < datagrams.size(); ++index) {
    pacer_.refund(datagrams[index].size());
    burst.mark(index).origin->unsent(burst.mark(index));
  }
  if (sent == 0) return;
  uint64_t bytes = 0;
  for (size_t index = 0; index < sent; ++index) {
    bytes += datagrams[index].size();
    const DatagramMark mark = burst.mark(index);
    mark.origin->sent(mark);
  }
  counters.add(Counter::tx_datagrams, sent);
  counters.add(Counter::tx_bytes, bytes);
}

}  // namespace diwarp::rnic
