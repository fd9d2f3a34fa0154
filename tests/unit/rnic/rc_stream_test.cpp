// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_stream.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>
#include "support/catch.h"

#include "parts.h"
#include "rnic/context/connection_control.h"
#include "rnic/engine/attach.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

using Octets = std::vector<std::byte>;

/// What becomes of a stream, after it is gone.
struct History {
  Octets sent;
  bool ended = false;
  bool reset = false;
  bool closed = false;
  bool announces = false;  // that it may be read or written
  int asked_for_zero_copy = 0;
};

class RecordedStream final : public llp::Stream {
 public:
  explicit RecordedStream(History& history) : history_(history) {}
  ~RecordedStream() override { history_.closed = true; }

  llp::IoResult send(std::span<const ConstBytes> pieces) override {
    for (const ConstBytes piece : pieces)
      history_.sent.insert(history_.sent.end(), piece.begin(), piece.end());
    return {.bytes = history_.sent.size()};
  }
  bool allow_zero_copy(size_t, Counters&) override {
    ++history_.asked_for_zero_copy;
    return can_zero_copy;
  }
  llp::IoResult receive(Bytes) override { return {.status = llp::IoStatus::would_block}; }
  bool leave_engine() override { return leaves; }
  void shutdown_send() override { history_.ended = true; }
  void abort() override { history_.reset = true; }
  size_t maximum_segment() const override { return 1460; }
  Address local_address() const override { return Address::parse("10.0.0.1:1"); }
  Address peer_address() const override { return Address::parse("10.0.0.2:2"); }
  bool set_busy_poll(Duration) override { return can_busy_poll; }
  void on_ready(std::function<void()> callback) override {
    history_.announces = static_cast<bool>(callback);
  }

  bool can_zero_copy = true;
  bool can_busy_poll = true;
  bool leaves = false;

 private:
  History& history_;
};

class NoConnector final : public llp::Connector {
 public:
  std::unique_ptr<llp::PendingConnection> connect(const Address&, const Address&,
                                                  std::error_code&) override {
    return nullptr;
  }
  std::unique_ptr<llp::StreamListener> listen(const Address&, int) override { return nullptr; }
  std::unique_ptr<llp::Stream> adopt(int) override { return nullptr; }
  std::error_code find_source(const Address&, const Address&, Address&) override { return {}; }
};

class NoBackend final : public llp::Backend {
 public:
  std::unique_ptr<llp::DatagramLink> open_datagrams(const Address&,
                                                    const DatagramOptions&) override {
    return nullptr;
  }
  llp::Connector& connector() override { return connector_; }
  llp::BackendDescription describe() const override { return {}; }
  DatagramSocketAttributes query_datagrams(const Address&) const override { return {}; }

 private:
  NoConnector connector_;
};

/// A device whose control path keeps what it is given.
class Host final : public DeviceContext, private ConnectionControl {
 public:
  Host(const Clock& clock, size_t zerocopy_from)
      : DeviceContext(Address::parse("127.0.0.1"),
                      {.progress = Progress::manual, .zerocopy_from = zerocopy_from}, clock) {
    set_links({}, std::make_unique<NoBackend>());
  }
  ConnectionControl& connections() override { return *this; }

  std::unique_ptr<llp::Stream> lingering;
  Octets final_bytes;

 private:
  NegotiatedConnection connect(const Address&, const ConnectOptions&) override { return {}; }
  NegotiatedConnection connect_on(int, const ConnectOptions&) override { return {}; }
  NegotiatedConnection accept_on(int, const AcceptOptions&, Duration) override { return {}; }
  void start_lingering_close(std::unique_ptr<llp::Stream> stream, Octets bytes) override {
    lingering = std::move(stream);
    final_bytes = std::move(bytes);
  }
};

struct Fixture {
  explicit Fixture(size_t zerocopy_from = 0) : host(clock, zerocopy_from) { stream.attach_none(); }
  ~Fixture() { detach_endpoint(host.engine(), endpoint); }

  void attach() { stream.attach(std::move(made)); }
  uint64_t counter(Counter which) const { return host.counters().get(which); }

  History history;
  ManualClock clock{kNow};
  Host host;
  CountingEndpoint endpoint;
  RcStream stream{host, endpoint};
  std::unique_ptr<RecordedStream> made = std::make_unique<RecordedStream>(history);
};

const Octets kLast = test::text("the last bytes");

}  // namespace

TEST_CASE("rc stream: its addresses are those of the stream, also when that is gone") {
  Fixture f;
  CHECK_FALSE(f.stream);
  CHECK(f.stream.local_address() == Address::parse("127.0.0.1"));
  f.attach();
  REQUIRE(f.stream);
  f.stream.close(true, {});
  CHECK_FALSE(f.stream);
  CHECK(f.stream.local_address() == Address::parse("10.0.0.1:1"));
  CHECK(f.stream.peer_address() == Address::parse("10.0.0.2:2"));
}

TEST_CASE("rc stream: the endpoint is asked for input while there is a stream") {
  Fixture f;
  f.host.engine().poll_step();
  const uint64_t without = f.endpoint.received;
  f.attach();
  CHECK(f.history.announces);
  f.host.engine().poll_step();
  CHECK(f.endpoint.received > without);
  f.stream.close(true, {});
  CHECK_FALSE(f.history.announces);
}

TEST_CASE("rc stream: a stream ends in order, or with a reset") {
  const bool in_order = GENERATE(true, false);
  Fixture f;
  f.attach();
  f.stream.close(in_order, {});
  CHECK(f.history.closed);
  CHECK(f.history.reset == !in_order);
  CHECK(f.history.sent.empty());
  CHECK(f.counter(Counter::rc_terminates_sent) == 0);
}

TEST_CASE("rc stream: the final bytes of a stream that leaves the engine are the control path's") {
  Fixture f;
  f.made->leaves = true;
  f.attach();
  f.stream.close(false, kLast);
  CHECK(f.host.lingering != nullptr);
  CHECK(f.host.final_bytes == kLast);
  CHECK_FALSE(f.history.closed);
  CHECK_FALSE(f.history.reset);
  CHECK(f.history.sent.empty());
  CHECK(f.counter(Counter::rc_terminates_sent) == 1);
}

TEST_CASE("rc stream: the final bytes of a stream that cannot leave the engine are sent at once") {
  Fixture f;
  f.attach();
  f.stream.close(false, kLast);
  CHECK(f.history.sent == kLast);
  CHECK(f.history.ended);
  CHECK_FALSE(f.history.reset);
  CHECK(f.history.closed);
  CHECK(f.counter(Counter::rc_terminates_sent) == 1);
}

TEST_CASE("rc stream: a stream sends without copying where the device asks for it, and it can") {
  Fixture f(1);
  f.attach();
  f.stream.allow_zero_copy(false);
  CHECK(f.stream.zero_copy());
  CHECK(f.counter(Counter::rc_zerocopy_refused) == 0);
  f.stream.allow_zero_copy(true);  // FPDUs with markers
  CHECK_FALSE(f.stream.zero_copy());
  CHECK(f.history.asked_for_zero_copy == 1);
  CHECK(f.counter(Counter::rc_zerocopy_refused) == 1);
}

TEST_CASE("rc stream: that a stream cannot send without copying is counted") {
  Fixture f(1);
  f.made->can_zero_copy = false;
  f.attach();
  f.stream.allow_zero_copy(false);
  CHECK_FALSE(f.stream.zero_copy());
  CHECK(f.counter(Counter::rc_zerocopy_refused) == 1);
}

TEST_CASE("rc stream: where the device does not ask for it, a stream copies") {
  Fixture f(0);
  f.attach();
  f.stream.allow_zero_copy(false);
  CHECK_FALSE(f.stream.zero_copy());
  CHECK(f.history.asked_for_zero_copy == 0);
  CHECK(f.counter(Counter::rc_zerocopy_refused) == 0);
}

TEST_CASE("rc stream: a stream that the system does not let poll busily is counted") {
  Fixture f;
  f.made->can_busy_poll = false;
  f.attach();
  CHECK(f.counter(Counter::busy_poll_refused) == 1);
}
