// SPDX-License-Identifier: Apache-2.0
// A feed of prices to a multicast group: the publisher sends each tick once, and each subscriber
// that joined gets it. Subscribers on one host share an address and a port. Nobody acknowledges:
// the number in the immediate data shows a subscriber what it missed.
#include <diwarp/verbs.h>

#include <cstdio>
#include <list>

#include "common.h"

using example::check, example::next;
constexpr uint64_t kTicks = 10;

struct Subscriber : example::End {
  Subscriber(const diwarp::Address& group, uint16_t port)
      : End(diwarp::QpType::ud, {.port = port, .share_port = true}) {
    qp.join(group);
    for (uint64_t slot = 0; slot < kTicks; ++slot)
      check(qp.post_recv({.wr_id = slot, .sges = in.sge(slot * 32, 32)}));
  }

  /// Prints what arrives up to the last tick, or until nothing has come for a second.
  void print(int number) {
    uint64_t expected = 0;
    while (expected < kTicks) {
      const auto wc = cq.wait(std::chrono::seconds(1));
      if (!wc) break;
      if (wc->immediate != expected) std::printf("subscriber %d: a gap\n", number);
      std::printf("subscriber %d: tick %d, %.*s\n", number, static_cast<int>(wc->immediate),
                  static_cast<int>(wc->byte_count), inbox + wc->wr_id * 32);
      expected = wc->immediate + 1;
    }
  }

  char inbox[kTicks * 32] = "";
  diwarp::MemoryRegion in{pd, inbox, sizeof inbox};
};

int main(int argc, char**) try {
  example::take_no_arguments(argc);
  const auto group = diwarp::Address::parse("239.192.77.10");
  std::list<Subscriber> subscribers;
  subscribers.emplace_back(group, 0);  // on a free port, which the others share
  const uint16_t port = subscribers.front().qp.address().port();
  for (int more = 0; more < 2; ++more) subscribers.emplace_back(group, port);

  example::End publisher(diwarp::QpType::ud);
  for (uint64_t tick = 0; tick < kTicks; ++tick) {
    std::string price = "price " + std::to_string(100 + tick * tick % 7);
    check(publisher.qp.post_send(
        {.sges = diwarp::Sge{price.data(), static_cast<uint32_t>(price.size()), 0},
         .flags = diwarp::SendFlags::signaled | diwarp::SendFlags::inline_data,
         .destination = group.with_port(port),
         .immediate = tick}));
    next(publisher.cq);
  }
  int number = 0;
  for (Subscriber& subscriber : subscribers) subscriber.print(++number);
  example::finish_output();
} catch (const std::exception& error) {
  std::fprintf(stderr, "multicast_feed: %s\n", error.what());
  return 1;
}
