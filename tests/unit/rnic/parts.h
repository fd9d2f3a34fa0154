// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/random.h"
#include "counting_endpoint.h"
#include "ddp/protection_context.h"
#include "ddp/stag_table.h"
#include "dgram/control.h"
#include "dgram/envelope.h"
#include "dgram/identity.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "llp/datagram_link.h"
#include "rdmap/datagram.h"
#include "rnic/context/device_context.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/pacer.h"
#include "rnic/datagram/waker.h"
#include "rnic/engine/datagram_burst.h"
#include "rnic/queues/completion_queue.h"
#include "rnic/queues/receive_buffers.h"
#include "rnic/queues/work_queue.h"
#include "support/bytes.h"

/// The objects that the parts of queue pairs work with, for tests of one part without a queue pair,
/// a socket or a thread.
namespace diwarp::rnic::parts {

inline constexpr uint32_t kDomain = 5;
inline constexpr uint32_t kQueuePair = 77;
inline constexpr Time kNow{std::chrono::seconds(1000)};

inline constexpr Access kAllRights = Access::local_write | Access::remote_write |
                                     Access::remote_read | Access::remote_atomic |
                                     Access::window_bind;

using test::bytes_of;

/// A device without links and connections, which completion queues need for its engine.
class BareDevice final : public DeviceContext {
 public:
  explicit BareDevice(const Clock& clock)
      : DeviceContext(Address::parse("127.0.0.1"), {.progress = Progress::manual}, clock) {}
  ConnectionControl& connections() override { throw std::logic_error("no connections here"); }
};

/// Memory that shows what was written to it.
class Canvas {
 public:
  static constexpr size_t kSize = 256;
  static constexpr std::byte kUntouched{0xA5};

  Canvas() { wipe(); }
  void wipe() { bytes_.fill(kUntouched); }
  std::byte* at(size_t offset) { return bytes_.data() + offset; }
  size_t offset_of(const void* address) const {
    return static_cast<size_t>(static_cast<const std::byte*>(address) - bytes_.data());
  }

  /// Whether `text` is there, and nothing else was written.
  bool has_only(size_t offset, std::string_view text) const {
    Canvas expected;
    std::ranges::copy(bytes_of(text), expected.bytes_.begin() + static_cast<ptrdiff_t>(offset));
    return bytes_ == expected.bytes_;
  }
  bool untouched() const { return has_only(0, ""); }

 private:
  alignas(8) std::array<std::byte, kSize> bytes_;
};

/// STags over a canvas, and the context that checks them.
struct Memory {
  Memory() { protection.set_queue_pair(kQueuePair); }

  /// Registers [begin, begin + length) of the canvas, with tagged offsets from `base` on.
  STag add(size_t begin, size_t length, Access access = kAllRights, uint64_t base = 0,
           uint32_t domain = kDomain) {
    return stags.insert({.protection_domain = domain,
                         .access = access,
                         .memory = canvas.at(begin),
                         .base = base,
                         .length = length});
  }
  STag add_window(uint32_t domain = kDomain) {
    return stags.insert({.protection_domain = domain, .kind = ddp::EntryKind::window});
  }
  Sge sge(STag lkey, size_t offset, size_t length) {
    return {canvas.at(offset), static_cast<uint32_t>(length), lkey};
  }

  Canvas canvas;
  Random random{7};
  ddp::STagTable stags{[] {}, [this] { return static_cast<uint32_t>(random.next()); }};
  ddp::ProtectionContext protection{stags, kDomain};
};

struct CountingWaker final : Waker {
  void wake() override { ++woken; }
  int woken = 0;
};

/// A completion queue, and what it needs.
struct Completions {
  explicit Completions(uint32_t entries = 64) : cq(device, entries, nullptr, 0) {}

  std::vector<WorkCompletion> poll() {
    std::vector<WorkCompletion> all;
    WorkCompletion one;
    while (cq.poll({&one, 1}) != 0) all.push_back(std::move(one));
    return all;
  }

  ManualClock clock{kNow};
  std::shared_ptr<BareDevice> device = std::make_shared<BareDevice>(clock);
  CompletionQueue cq;
};

/// The receives of a queue pair that has a queue of its own, and what becomes of them.
struct Receives : Completions {
  explicit Receives(uint32_t depth = 8, uint32_t entries = 64)
      : Completions(entries), buffers(endpoint, {.max_recv_wr = depth}, nullptr) {}

  std::error_code post(uint64_t wr_id, const SgeList& sges = {}) {
    const ReceiveWorkRequest request{.wr_id = wr_id, .sges = sges};
    size_t posted = 0;
    return buffers.queue().post({&request, 1}, posted);
  }
  /// Completions of receives, as far as there are any now.
  std::vector<WorkCompletion> reported() {
    buffers.report(cq, buffers.completed(), kQueuePair);
    return poll();
  }
  /// The wr_id of the next receive; 0: there is none.
  uint64_t next() {
    const ReceiveEntry* const entry = buffers.peek();
    return entry == nullptr ? 0 : entry->wr_id;
  }

  CountingEndpoint endpoint;
  ReceiveBuffers buffers;
};

/// A send queue, and what becomes of its requests.
struct Sends : Completions {
  explicit Sends(CompletionOrder order = CompletionOrder::posting)
      : queue({.max_send_wr = 16}, false, order) {}

  std::vector<WorkCompletion> reported() {
    queue.report(cq, kQueuePair);
    return poll();
  }
  /// Statuses of what is reported now.
  std::vector<WcStatus> statuses() {
    std::vector<WcStatus> all;
    for (const WorkCompletion& completion : reported()) all.push_back(completion.status);
    return all;
  }

  SendQueue queue;
};

using Statuses = std::vector<WcStatus>;

/// A datagram that a source has added to a burst.
struct Sent {
  Address to;
  std::vector<std::byte> bytes;
  DatagramTag tag;

  dgram::OpenedEnvelope opened() const { return dgram::Envelope::open(bytes); }
  bool is_control() const {
    return opened().labels.datagram_class == dgram::DatagramClass::control;
  }
  /// Its payload lies in `bytes`.
  rdmap::DatagramSegment segment() const {
    const dgram::OpenedEnvelope envelope = opened();
    const rdmap::ParsedSegment parsed = rdmap::parse_segment(envelope.labels.flags, envelope.body);
    if (!envelope.valid || !parsed.valid) throw std::runtime_error("no segment of class UD");
    return parsed.segment;
  }
  dgram::ParsedControl control() const { return dgram::parse_control(opened().body); }
  std::string_view text() const {
    const ConstBytes payload = segment().payload;
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
  }
};

/// Where a source's datagrams go instead of a link.
class Outlet {
 public:
  /// `datagram`: bytes of the longest.
  explicit Outlet(size_t datagram = 1472) : link_(datagram) {}

  void set_datagram(size_t bytes) { link_.most = bytes; }

  /// One burst of what the source has; it is not told what becomes of it.
  std::vector<Sent> fill(DatagramSource& source, Time now) {
    burst_.clear();
    DatagramBuilder builder(burst_, link_, pacer_, identity_, 0);
    source.fill(builder, now);
    std::vector<Sent> all;
    for (const llp::OutgoingDatagram& datagram : burst_.datagrams()) {
      Sent sent{.to = datagram.to, .bytes = {}, .tag = burst_.tag(all.size())};
      for (ConstBytes piece : datagram.pieces)
        sent.bytes.insert(sent.bytes.end(), piece.begin(), piece.end());
      all.push_back(std::move(sent));
    }
    return all;
  }
  /// The same, and the link takes it all.
  std::vector<Sent> send(DatagramSource& source, Time now) {
    std::vector<Sent> all = fill(source, now);
    for (const Sent& sent : all) sent.tag.source->sent(sent.tag);
    return all;
  }

 private:
  struct Link final : llp::DatagramLink {
    explicit Link(size_t longest) : most(longest) {}
    llp::SendResult send(std::span<const llp::OutgoingDatagram>) override { return {}; }
    size_t receive(llp::ReceiveBatch&) override { return 0; }
    size_t max_datagram(const Address&) override { return most; }
    Address local_address() const override { return {}; }
    size_t most;
  };

  DatagramBurst burst_;
  Link link_;
  Pacer pacer_;
  dgram::Identity identity_{SipKey{5, 6}};
};

}  // namespace diwarp::rnic::parts
