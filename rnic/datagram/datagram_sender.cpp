// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/datagram_sender.h"

#include <cassert>

#include "rnic/datagram/datagram_builder.h"

namespace diwarp::rnic {

void DatagramSender::add(DatagramSource& source) {
  assert(count_ < kMaxSources);
  sources_[count_++] = &source;
}

Served DatagramSender::run(DatagramBurst& burst, llp::DatagramLink& link, Counters& counters,
                           Time now) {
  if (pacer_.limited()) pacer_.refill(now);
  burst.clear();
  bool more = fill(burst, link, now);
  // A source may have put something in line for one that was asked before.
  if (burst.size() == 0) more = fill(burst, link, now);
  paced_ = !pacer_.may_send();
  if (burst.size() == 0) return {};
  const llp::SendResult result = link.send(burst.datagrams());
  book(burst, result.sent, counters);
  paced_ = paced_ && result.status == llp::SendStatus::ok;
  Served served{result.sent, more && !paced_ ? Pending::more : Pending::nothing};
  if (result.status == llp::SendStatus::refused) {
    const DatagramTag tag = burst.tag(result.sent);
    counters.add(Counter::tx_errors);
    tag.source->refused(tag, result.error);
    served.pending = Pending::more;
  } else if (result.status == llp::SendStatus::would_block) {
    counters.add(Counter::tx_would_block);
    served.pending = Pending::writable;
  }
  return served;
}

bool DatagramSender::fill(DatagramBurst& burst, llp::DatagramLink& link, Time now) {
  DatagramBuilder builder(burst, link, pacer_, identity_, segment_);
  size_t turn = first_;
  for (size_t i = 0; i < count_; ++i) {
    DatagramSource& source = *sources_[turn];
    if (!source.is_idle() && builder.open()) source.fill(builder, now);
    turn = turn + 1 == count_ ? 0 : turn + 1;
  }
  first_ = static_cast<uint8_t>(first_ + 1 == count_ ? 0 : first_ + 1);
  return burst.full() || builder.closed();
}

/// Tells the sources which datagrams were sent. The others come again.
void DatagramSender::book(const DatagramBurst& burst, size_t sent, Counters& counters) {
  size_t bytes = burst.bytes();
  for (size_t index = sent; index < burst.size(); ++index) {
    const size_t unsent = burst.datagrams()[index].size();
    bytes -= unsent;
    pacer_.refund(unsent);
    burst.tag(index).source->unsent(burst.tag(index));  // guard(full-link)
  }
  if (sent == 0) return;
  for (size_t index = 0; index < sent; ++index) {
    const DatagramTag tag = burst.tag(index);
    tag.source->sent(tag);
  }
  counters.add(Counter::tx_datagrams, sent);
  counters.add(Counter::tx_bytes, bytes);
}

}  // namespace diwarp::rnic
