// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <diwarp/verbs.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "llp/impairment/impairment.h"
#include "llp/memory/memory_network.h"
#include "rnic/device.h"
#include "stack/datagram.h"
#include "stack/raw_sockets.h"
#include "support/catch.h"
#include "support/contents.h"
#include "verbs/handle_access.h"

/// The common part of the tests of the whole stack: parties that talk, and the worlds they live in.
namespace diwarp::test {

using namespace std::chrono_literals;

/// No wait of a test lasts longer, however slow the machine.
inline constexpr Duration kPatience = 30s;

inline bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// The code that set-up refuses with; no code where it does not.
template <class Call>
std::error_code refusal(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    INFO(error.what());
    // A message about the case, besides the one of the code.
    CHECK(std::string_view(error.what()).size() > error.code().message().size() + 10);
    return error.code();
  }
  return {};
}

struct PartyOptions {
  size_t memory = 64 << 10;
  uint32_t send_entries = 256;
  uint32_t receive_entries = 256;
  QueuePairCapacity capacity = {};
  DatagramOptions datagram = {};
  bool signal_all = false;
  QpType type = QpType::ud;
  ReliableOptions reliable = {};
};

/// A UD (or RD) queue pair with all that belongs to it.
class Party {
 public:
  explicit Party(const Device& device, const PartyOptions& options = {})
      : pd(device),
        send_cq(device, options.send_entries),
        recv_cq(device, options.receive_entries),
        qp(pd, {.type = options.type,
                .send_cq = send_cq,
                .recv_cq = recv_cq,
                .capacity = options.capacity,
                .datagram = options.datagram,
                .signal_all = options.signal_all,
                .reliable = options.reliable}),
        memory(options.memory),
        mr(pd, std::span(memory)) {}

  Address address() const { return qp.address(); }

  std::error_code post_recv(uint64_t wr_id, size_t offset, size_t length) {
    const Sge sge = mr.sge(offset, length);
    return qp.post_recv({.wr_id = wr_id, .sges = {&sge, 1}});
  }

  /// Receives of `length` bytes each, one after the other; wr_id counts from 0.
  void post_receives(size_t count, size_t length) {
    for (size_t i = 0; i < count; ++i) REQUIRE_FALSE(post_recv(i, i * length, length));
  }

  std::error_code send(const Address& to, size_t offset, size_t length, uint64_t wr_id = 0,
                       SendFlags flags = SendFlags::signaled) {
    const Sge sge = mr.sge(offset, length);
    return qp.post_send({.wr_id = wr_id, .sges = {&sge, 1}, .flags = flags, .destination = to});
  }

  std::span<std::byte> bytes(size_t offset, size_t length) {
    return std::span(memory).subspan(offset, length);
  }
  void fill(std::span<const std::byte> contents, size_t offset = 0) {
    std::copy(contents.begin(), contents.end(), memory.begin() + static_cast<ptrdiff_t>(offset));
  }

  ProtectionDomain pd;
  CompletionQueue send_cq;
  CompletionQueue recv_cq;
  QueuePair qp;
  std::vector<std::byte> memory;
  MemoryRegion mr;
};

/// All completions that lie in the queue now.
inline std::vector<WorkCompletion> drain(CompletionQueue& cq) {
  std::vector<WorkCompletion> all;
  std::array<WorkCompletion, 16> batch;
  while (const size_t count = cq.poll(batch))
    all.insert(all.end(), batch.begin(), batch.begin() + count);
  return all;
}

/// The next `count` completions; fewer only if they do not come.
inline std::vector<WorkCompletion> await(CompletionQueue& cq, size_t count,
                                         Duration patience = kPatience) {
  std::vector<WorkCompletion> all;
  std::array<WorkCompletion, 16> batch;
  const Time deadline = std::chrono::steady_clock::now() + patience;
  while (all.size() < count) {
    const Duration left = deadline - std::chrono::steady_clock::now();
    if (left <= Duration::zero()) break;
    const size_t wanted = std::min(batch.size(), count - all.size());
    const size_t got = cq.poll(std::span(batch).first(wanted), left);
    all.insert(all.end(), batch.begin(), batch.begin() + static_cast<ptrdiff_t>(got));
  }
  return all;
}

/// Calls `done` until it is true; false if it never is.
template <class Condition>
bool eventually(Condition&& done, Duration patience = kPatience) {
  const Time deadline = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

/// The part of the time since its making for which this process had a processor: 0 where its
/// threads slept, 1 where one of them never did. It is a ratio, so a loaded machine lowers it.
class ProcessorShare {
 public:
  ProcessorShare() : start_(now()) {}

  /// Of all threads.
  double of_process() const {
    const Times times = now();
    return ratio(times.process - start_.process, times.wall - start_.wall);
  }
  /// Of all threads but the calling one, which is the one that made this.
  double of_others() const {
    const Times times = now();
    const Duration mine = times.thread - start_.thread;
    return ratio(times.process - start_.process - mine, times.wall - start_.wall);
  }

 private:
  struct Times {
    Duration process;
    Duration thread;
    Duration wall;
  };

  static Duration read(clockid_t clock) {
    timespec time;
    ::clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
  static Times now() {
    return {read(CLOCK_PROCESS_CPUTIME_ID), read(CLOCK_THREAD_CPUTIME_ID), read(CLOCK_MONOTONIC)};
  }
  static double ratio(Duration used, Duration passed) {
    return static_cast<double>(used.count()) / static_cast<double>(passed.count());
  }

  Times start_;
};

/// Devices on a network inside the process, stepped by hand, in a time that stands still.
class World {
 public:
  using Link = std::unique_ptr<llp::DatagramLink>;
  using Wrap = std::function<Link(Link)>;

  explicit World(const llp::MemoryOptions& options = {.queue_datagrams = 16384})
      : network(llp::MemoryNetwork::create(options)) {}

  /// Each device has an address of its own, 10.0.0.1 and so on. `wrap` dresses its links.
  Device& add_device(Wrap wrap = {}) { return add(std::move(wrap), Progress::manual, &clock); }
  /// One that lives in real time.
  Device& add_real_device(Progress progress) { return add({}, progress, nullptr); }

  /// Steps all devices until nothing happens any more.
  void settle() {
    for (int round = 0; round < 100000; ++round) {
      size_t work = 0;
      for (Device& device : devices) work += device.progress();
      if (work == 0) return;
    }
    FAIL("the devices never come to rest");
  }

  void advance(Duration by) {
    clock.advance(by);
    settle();
  }

  ManualClock clock{Time(1000s)};
  std::shared_ptr<llp::MemoryNetwork> network;
  std::deque<Device> devices;
  DeviceOptions device_options;  // of those that are added from now on

 private:
  Device& add(Wrap wrap, Progress progress, const Clock* time) {
    const Address host = Address::parse("10.0.0." + std::to_string(devices.size() + 1));
    rnic::DeviceParts parts;
    parts.clock = time;
    parts.datagram_links = [net = network, wrap = std::move(wrap)](const Address& local,
                                                                   const DatagramOptions& options) {
      Link link = net->open(local, options.group.loopback);
      return wrap ? wrap(std::move(link)) : std::move(link);
    };
    device_options.progress = progress;
    devices.push_back(
        handle_of<Device>(std::make_shared<rnic::Device>(host, device_options, parts)));
    return devices.back();
  }
};

/// Someone on the in-memory network who sends what he likes.
class Stranger {
 public:
  explicit Stranger(World& world, uint16_t port = 0)
      : link_(world.network->open(Address::parse("10.0.1.1", port))) {}

  Address address() const { return link_->local_address(); }
  void send(const Address& to, const std::vector<std::byte>& datagram) {
    const ConstBytes piece(datagram);
    const llp::OutgoingDatagram outgoing{to, {&piece, 1}};
    REQUIRE(link_->send({&outgoing, 1}).sent == 1);
  }
  void send(const Address& to, const Segment& segment) { send(to, to_bytes(segment)); }

 private:
  std::unique_ptr<llp::DatagramLink> link_;
};

/// A plain datagram socket. It asserts nothing, so that any thread may use it; a call that fails
/// throws.
class RawSocket {
 public:
  explicit RawSocket(const Address& local) : fd_(raw::open(raw::Kind::datagrams, local.family())) {
    demand(raw::bind(fd_.get(), local));
  }

  Address address() const { return raw::address_of(fd_.get()); }
  void send(const Address& to, std::span<const std::byte> bytes) {
    demand(raw::send_to(fd_.get(), to, bytes));
  }
  int release() { return fd_.release(); }

 private:
  static void demand(bool good) {
    if (!good) throw std::system_error(errno, std::generic_category(), "a plain datagram socket");
  }

  UniqueFd fd_;
};

/// The sum of all counters that tell of dropped segments.
inline uint64_t drops(const Device& device) {
  uint64_t total = 0;
  for (const CounterValue& counter : device.counters())
    if (counter.name.starts_with("drop_")) total += counter.value;
  return total;
}

}  // namespace diwarp::test
