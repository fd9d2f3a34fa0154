// SPDX-License-Identifier: Apache-2.0
#include <future>

#include "bridge/datagrams.h"
#include "contract/cm.h"

/// Objects of two devices put together.
namespace diwarp::bridge_test {

namespace {

/// A device under test, and another one whose objects do not go with it.
struct Mixed {
  Mixed(Device its_own, Device its_foreign)
      : own(std::move(its_own)), foreign(std::move(its_foreign)) {}

  std::error_code queue_pair(QpType type, const CompletionQueue& send_cq,
                             const CompletionQueue& recv_cq,
                             const SharedReceiveQueueRef& srq = {}) {
    return refusal(
        [&] { QueuePair(pd, {.type = type, .send_cq = send_cq, .recv_cq = recv_cq, .srq = srq}); });
  }
  void check_queues(QpType type) {
    CAPTURE(to_string(type));
    CHECK(queue_pair(type, cq, foreign_cq) == Errc::invalid_argument);
    CHECK(queue_pair(type, foreign_cq, cq) == Errc::invalid_argument);
    CHECK(queue_pair(type, cq, cq, foreign_srq) == Errc::invalid_argument);
    CHECK(queue_pair(type, cq, cq, of_other_pd) == Errc::invalid_argument);
    CHECK_FALSE(queue_pair(type, cq, cq));
  }
  void check_channels() const {
    const CompletionChannel channel(foreign);
    CHECK(refusal([&] { CompletionQueue(own, 16, channel); }) == Errc::invalid_argument);
  }
  /// Connections of the one with queue pairs of the other.
  void check_connections() {
    Party party(own);
    Party stranger(foreign);
    Listener listener(own, 0);
    auto connecting = std::async(
        std::launch::async, [&] { party.qp.connect(listener.address(), {.timeout = kPatience}); });
    Party answerer(own);
    std::optional<ConnectionRequest> request = listener.get_request(kPatience);
    REQUIRE(request);
    CHECK(refusal([&] { request->accept(stranger.qp); }) == Errc::invalid_argument);
    request->accept(answerer.qp);
    connecting.get();
    check_message(party, answerer);
  }
  void check_ids() {
    Party stranger(foreign);
    Listener listener(own, 0);
    CmEventChannel channel;
    CmId id(own, channel);
    id.resolve_addr(listener.address());
    next_event(channel, CmEventType::addr_resolved);
    CHECK(refusal([&] { id.connect(stranger.qp); }) == Errc::invalid_argument);
  }
  void check_all() {
    check_queues(QpType::rc);
    check_channels();
    check_connections();
    check_ids();
  }

  Device own;
  Device foreign;
  ProtectionDomain pd{own};
  ProtectionDomain other_pd{own};
  ProtectionDomain foreign_pd{foreign};
  CompletionQueue cq{own, 16};
  CompletionQueue foreign_cq{foreign, 16};
  SharedReceiveQueue of_other_pd{other_pd};
  SharedReceiveQueue foreign_srq{foreign_pd};
};

}  // namespace

TEST_CASE("Objects of two hardware devices do not go together") {
  const Fresh fresh;
  Mixed mixed(open_hardware(), open_hardware());
  mixed.check_all();
  mixed.check_queues(QpType::ud);
}

TEST_CASE("Objects of a hardware device do not go with those of a software device") {
  const Fresh fresh;
  Mixed mixed(open_hardware(), Device::open("127.0.0.1"));
  mixed.check_all();
  mixed.check_queues(QpType::ud);
}

TEST_CASE("Objects of a software device do not go with those of a hardware device") {
  const Fresh fresh;
  Mixed mixed(Device::open("127.0.0.1"), open_hardware());
  mixed.check_all();
  mixed.check_queues(QpType::ud);
}

TEST_CASE("Objects of two hardware devices without datagrams do not go together") {
  const Fresh fresh;
  fake().deny("two-keys", 1);
  Mixed mixed(open_hardware(), open_hardware());
  mixed.check_all();
}

TEST_CASE("A shared receive queue that was refused for a queue pair is free for another kind") {
  const Fresh fresh;
  const Device device = open_hardware();
  const ProtectionDomain pd(device);
  const ProtectionDomain other_pd(device);
  const CompletionQueue cq(device, 16);
  const SharedReceiveQueue srq(pd);
  const auto make = [&](const ProtectionDomain& in, QpType type, uint32_t depth) {
    return refusal([&] {
      QueuePair(in, {.type = type,
                     .send_cq = cq,
                     .recv_cq = cq,
                     .capacity = {.max_send_wr = depth},
                     .srq = srq});
    });
  };
  CHECK(make(other_pd, QpType::rc, 16) == Errc::invalid_argument);
  CHECK(make(pd, QpType::rc, 1'000'000) == Errc::invalid_argument);
  CHECK_FALSE(make(pd, QpType::ud, 16));
  CHECK(make(pd, QpType::rc, 16) == Errc::invalid_argument);  // it is the datagrams' now
}

TEST_CASE("A queue pair over datagrams takes no connection") {
  const Fresh fresh;
  const Device device = open_hardware();
  Party party(device);
  Datagrams datagrams(device, party);
  Listener listener(device, 0);
  auto connecting = std::async(std::launch::async, [&] {
    return refusal([&] { party.qp.connect(listener.address(), {.timeout = kPatience}); });
  });
  std::optional<ConnectionRequest> request = listener.get_request(kPatience);
  REQUIRE(request);
  CHECK(refusal([&] { request->accept(datagrams.qp); }) == Errc::invalid_argument);
  request->reject();
  CHECK(connecting.get() == Errc::rejected);
  CHECK(refusal([&] { datagrams.qp.connect(listener.address()); }) == Errc::unsupported_operation);
}

}  // namespace diwarp::bridge_test
