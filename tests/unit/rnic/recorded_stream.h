// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counters.h"
#include "diwarp/address.h"
#include "llp/backend.h"
#include "llp/connector.h"
#include "llp/stream.h"
#include "rnic/context/connection_control.h"
#include "rnic/context/device_context.h"

/// A stream that tells what is done with it, and a device that serves it, for tests of the parts of
/// RC queue pairs.
namespace diwarp::rnic::parts {

/// What becomes of a stream, after it is gone.
struct History {
  std::vector<std::byte> sent;
  bool ended = false;
  bool reset = false;
  bool closed = false;
  bool announces = false;  // that it may be read or written
  int asked_for_zero_copy = 0;
};

/// Takes all that is sent. Nothing comes.
class RecordedStream : public llp::Stream {
 public:
  explicit RecordedStream(History& history) : history_(history) {}
  ~RecordedStream() override { history_.closed = true; }

  llp::IoResult send(std::span<const ConstBytes> pieces) override {
    const size_t before = history_.sent.size();
    for (const ConstBytes piece : pieces)
      history_.sent.insert(history_.sent.end(), piece.begin(), piece.end());
    return {.bytes = history_.sent.size() - before};
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
  std::unique_ptr<llp::StreamListener> listen(const Address&, const llp::ListenSettings&) override {
    return nullptr;
  }
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
  explicit Host(const Clock& clock, size_t zerocopy_from = 0)
      : DeviceContext(Address::parse("127.0.0.1"),
                      {.progress = Progress::manual, .zerocopy_from = zerocopy_from}, clock) {
    set_links({}, std::make_unique<NoBackend>());
  }
  ConnectionControl& connections() override { return *this; }

  std::unique_ptr<llp::Stream> lingering;
  std::vector<std::byte> final_bytes;

 private:
  NegotiatedConnection connect(const Address&, const ConnectOptions&) override { return {}; }
  NegotiatedConnection connect_on(int, const ConnectOptions&) override { return {}; }
  NegotiatedConnection accept_on(int, const AcceptOptions&, Duration) override { return {}; }
  std::shared_ptr<PendingMeeting> make_meeting(uint32_t, const NamedPeer&, MeetingParty&) override {
    return nullptr;
  }
  void start_lingering_close(std::unique_ptr<llp::Stream> stream,
                             std::vector<std::byte> bytes) override {
    lingering = std::move(stream);
    final_bytes = std::move(bytes);
  }
};

}  // namespace diwarp::rnic::parts
