// SPDX-License-Identifier: Apache-2.0
// Regions are unpublished by any thread, without the baton: a region that was found a moment ago
// may not be found again (ddp/stag_table.h, at find()).
#include <atomic>
#include <mutex>
#include <thread>

#include "dgram/address_validation.h"
#include "parts.h"
#include "rnic/datagram/control_sender.h"
#include "rnic/datagram/error_reports.h"
#include "rnic/datagram/ud/source_table.h"
#include "rnic/datagram/ud/ud_responder.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

TEST_CASE("ud responder: a region may be deregistered while a Read Request for it is checked") {
  std::mutex baton;
  ddp::STagTable stags([&] { const std::lock_guard hold(baton); }, [] { return 1u; });
  ddp::ProtectionContext protection(stags, kDomain);
  Canvas canvas;
  const ddp::Region region{.stag = 0x100,
                           .protection_domain = kDomain,
                           .access = Access::remote_read,
                           .memory = canvas.at(0),
                           .length = 100};
  Counters counters;
  LoggedCounters logged(counters);
  const dgram::AddressValidation validation(SipKey{1, 2});
  CountingWaker waker;
  ControlSender control(waker);
  ErrorReports errors(control, logged, 8, 1000);
  UdResponder responder(protection, validation, control, errors, logged, {}, waker);
  SourceTable sources(SourceLimits{}, SipKey{1, 2});
  Counter reason{};
  Source& stranger = *sources.find_or_add({Address::parse("10.0.0.1:7"), 1}, kNow, reason);
  const auto request = rdmap::request_segment(1, {.length = 10, .source_stag = region.stag});

  std::atomic<bool> stop{false};
  std::thread owner([&] {
    while (!stop) {
      stags.insert_chosen(region);
      stags.erase(region.stag);
    }
  });
  for (int i = 0; i < 1'000'000; ++i) {
    const std::lock_guard hold(baton);
    responder.handle(request, stranger, 58, kNow);
    responder.reset();
  }
  stop = true;
  owner.join();
}
