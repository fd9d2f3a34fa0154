// SPDX-License-Identifier: Apache-2.0
#include "provider/cm_channel.h"

#include <chrono>
#include <future>
#include <vector>

#include "provider/cm_id.h"
#include "provider/waitable.h"
#include "support/catch.h"

namespace diwarp::provider {
namespace {

constexpr Duration kNow = Duration::zero();

/// An id that nobody calls.
class Id final : public CmId {
 public:
  void resolve_addr(const Address&) override {}
  void resolve_route() override {}
  void bind(const Address&) override {}
  void listen(const ListenOptions&) override {}
  void connect(QueuePair&, const ConnectOptions&) override {}
  void accept(QueuePair&, const AcceptOptions&) override {}
  void reject(std::span<const std::byte>) override {}
  void disconnect(const DisconnectOptions&) override {}
  void migrate(std::shared_ptr<CmChannel>) override {}
  uint64_t number() const override { return 0; }
  uint64_t context() const override { return 0; }
  void set_context(uint64_t) override {}
  Address local_address() const override { return {}; }
  Address peer_address() const override { return {}; }
};

/// Counts what becomes of it.
class Request final : public CmRequest {
 public:
  std::shared_ptr<CmId> fetch(const std::shared_ptr<CmChannel>&) override {
    ++fetched;
    return id;
  }
  void drop() override { ++dropped; }

  std::shared_ptr<CmId> id = std::make_shared<Id>();
  int fetched = 0;
  int dropped = 0;
};

/// A device that brings one event in the step before a wait, and then no more.
class Device final : public Waitable {
 public:
  explicit Device(CmChannel& channel) : channel_(channel) {}
  Duration before_wait(Duration limit) override {
    ++steps;
    if (steps == 1) channel_.push({.info = {.id = 7}});
    return std::min(limit, Duration(std::chrono::milliseconds(1)));
  }

  int steps = 0;

 private:
  CmChannel& channel_;
};

CmChannel::Record about(uint64_t id, uint64_t listener = 0,
                        std::shared_ptr<CmRequest> request = nullptr) {
  return {.info = {.id = id, .listener = listener}, .request = std::move(request)};
}

}  // namespace

TEST_CASE("events come in the order in which they were told, and then none") {
  const auto owned = std::make_shared<CmChannel>();
  CmChannel& channel = *owned;
  channel.push(about(1));
  channel.push(about(2));
  CHECK(channel.get_event(kNow)->info.id == 1);
  CHECK(channel.get_event(kNow)->info.id == 2);
  CHECK_FALSE(channel.get_event(kNow));
}

TEST_CASE("a request that is fetched brings its id, and is not dropped") {
  const auto owned = std::make_shared<CmChannel>();
  CmChannel& channel = *owned;
  const auto request = std::make_shared<Request>();
  channel.push(about(1, 9, request));
  const std::optional<CmChannel::Event> event = channel.get_event(kNow);
  REQUIRE(event);
  CHECK(event->request == request->id);
  CHECK(request->fetched == 1);
  CHECK(request->dropped == 0);
}

TEST_CASE("a request of a device that is gone is told without an id") {
  const auto owned = std::make_shared<CmChannel>();
  CmChannel& channel = *owned;
  const auto request = std::make_shared<Request>();
  request->id = nullptr;
  channel.push(about(1, 9, request));
  const std::optional<CmChannel::Event> event = channel.get_event(kNow);
  REQUIRE(event);
  CHECK(event->request == nullptr);
}

TEST_CASE("a channel that goes drops the requests that nobody fetched, and keeps none after that") {
  const auto waiting = std::make_shared<Request>();
  const auto late = std::make_shared<Request>();
  std::shared_ptr<CmChannel> channel;
  {
    const CmEventChannel owner;
    channel = owner.channel();
    channel->push(about(1, 9, waiting));
  }
  CHECK(waiting->dropped == 1);
  channel->push(about(2, 9, late));
  CHECK_FALSE(channel->get_event(kNow));
}

TEST_CASE("what is about an id, or came to it as a listener, can be taken out") {
  const auto owned = std::make_shared<CmChannel>();
  CmChannel& channel = *owned;
  channel.push(about(1));
  channel.push(about(2, 1));
  channel.push(about(3));
  CHECK(channel.purge(1).size() == 2);
  CHECK(channel.get_event(kNow)->info.id == 3);
  CHECK_FALSE(channel.get_event(kNow));
}

TEST_CASE("a record takes the place of the one that is chosen, or comes back") {
  const auto owned = std::make_shared<CmChannel>();
  CmChannel& channel = *owned;
  channel.push(about(1));
  channel.push(about(2));
  const auto choose_second = [](std::deque<CmChannel::Record>& waiting, const CmChannel::Record&) {
    return &waiting[1];
  };
  const auto choose_none = [](std::deque<CmChannel::Record>&, const CmChannel::Record&) {
    return static_cast<CmChannel::Record*>(nullptr);
  };
  CHECK(channel.exchange(about(3), choose_second).info.id == 2);
  CHECK(channel.exchange(about(4), choose_none).info.id == 4);
  CHECK(channel.get_event(kNow)->info.id == 1);
  CHECK(channel.get_event(kNow)->info.id == 3);
}

TEST_CASE("a closed channel exchanges nothing") {
  const auto owned = std::make_shared<CmChannel>();
  CmChannel& channel = *owned;
  channel.close();
  bool asked = false;
  const CmChannel::Record back =
      channel.exchange(about(3), [&](std::deque<CmChannel::Record>&, const CmChannel::Record&) {
        asked = true;
        return static_cast<CmChannel::Record*>(nullptr);
      });
  CHECK(back.info.id == 3);
  CHECK_FALSE(asked);
}

TEST_CASE("a wait moves each device of the ids on, as often as the device asks for it") {
  const auto owned = std::make_shared<CmChannel>();
  CmChannel& channel = *owned;
  const auto brings = std::make_shared<Device>(channel);
  const auto brings_too = std::make_shared<Device>(channel);
  channel.add(brings);
  channel.add(brings);  // its second id
  channel.add(brings_too);
  CHECK(channel.get_event(std::chrono::hours(1))->info.id == 7);
  CHECK(channel.get_event(std::chrono::hours(1))->info.id == 7);
  CHECK_FALSE(channel.get_event(std::chrono::milliseconds(5)));
  CHECK(brings->steps == brings_too->steps);
  CHECK(brings->steps > 2);
}

TEST_CASE("a device that is gone is not asked, and not kept") {
  const auto owned = std::make_shared<CmChannel>();
  CmChannel& channel = *owned;
  auto device = std::make_shared<Device>(channel);
  const std::weak_ptr<Device> gone = device;
  channel.add(device);
  device.reset();
  CHECK(gone.expired());
  CHECK_FALSE(channel.get_event(kNow));
}

TEST_CASE("numbers of ids do not come twice") {
  const uint64_t first = next_cm_number();
  CHECK(next_cm_number() == first + 1);
  CHECK(first != 0);
}

TEST_CASE("cm channel: the events of an id move behind those of another channel, in order") {
  const auto from = std::make_shared<CmChannel>();
  const auto to = std::make_shared<CmChannel>();
  const auto request = std::make_shared<Request>();
  to->push({.info = {.id = 1, .context = 100}});
  from->push({.info = {.id = 7, .context = 101}});
  from->push({.info = {.id = 8, .context = 102}});
  from->push({.info = {.id = 9, .listener = 7, .context = 103}, .request = request});
  from->push({.info = {.id = 7, .context = 104}});
  from->move_events(7, *to);
  const auto contexts = [](CmChannel& channel) {
    std::vector<uint64_t> all;
    while (const auto event = channel.get_event(Duration::zero()))
      all.push_back(event->info.context);
    return all;
  };
  CHECK(contexts(*to) == std::vector<uint64_t>{100, 101, 103, 104});
  CHECK(contexts(*from) == std::vector<uint64_t>{102});
  CHECK(request->fetched == 1);
  CHECK(request->dropped == 0);
}

TEST_CASE("cm channel: a thread that waits is told of events that move to its channel") {
  const auto from = std::make_shared<CmChannel>();
  const auto to = std::make_shared<CmChannel>();
  from->push({.info = {.id = 7}});
  auto waiting = std::async(std::launch::async,
                            [&] { return to->get_event(std::chrono::seconds(30)).has_value(); });
  from->move_events(7, *to);
  CHECK(waiting.get());
}

}  // namespace diwarp::provider
