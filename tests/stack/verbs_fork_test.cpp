// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "stack/support.h"
#include "support/child.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Parties on real sockets, in optionals so that a child can destroy them.
struct Scene {
  explicit Scene(Progress progress) : device(Device::open("127.0.0.1", {.progress = progress})) {
    channel.emplace(*device);
    a.emplace(*device);
    b.emplace(*device);
    b->post_receives(64, 100);
  }
  bool works() {
    if (a->send(b->address(), 0, 100)) return false;
    return await(b->recv_cq, 1).size() == 1 && await(a->send_cq, 1).size() == 1;
  }
  std::optional<Device> device;
  std::optional<CompletionChannel> channel;
  std::optional<Party> a;
  std::optional<Party> b;
};

}  // namespace

TEST_CASE("in a forked child every handle is dead, and the parent goes on") {
  const auto progress = GENERATE(Progress::thread, Progress::manual);
  Scene scene(progress);
  REQUIRE(scene.works());
  REQUIRE(eventually(others_sleep));
  const int failed = in_child([&] {
    std::array<WorkCompletion, 4> batch;
    Party& party = *scene.a;
    const Sge sge{party.memory.data(), 10, 0};
    int step = 0;
    int first_wrong = 0;
    const auto expect = [&](bool good) {
      ++step;
      if (!good && first_wrong == 0) first_wrong = step;
    };
    expect(party.qp.post_send({.sges = {&sge, 1}, .destination = Address::parse("127.0.0.1:5")}) ==
           Errc::device_gone);
    expect(party.qp.post_recv({.sges = {&sge, 1}}) == Errc::device_gone);
    expect(says_device_gone([&] { party.send_cq.poll(batch); }));
    expect(says_device_gone([&] { party.recv_cq.wait(1ms); }));
    expect(says_device_gone([&] { party.recv_cq.arm(); }));
    expect(says_device_gone([&] { party.qp.modify(QpState::error); }));
    expect(says_device_gone([&] { party.qp.query(); }));
    expect(says_device_gone([&] { party.mr.lkey(); }));
    expect(says_device_gone([&] { scene.channel->get_event(0ns); }));
    expect(says_device_gone([&] { scene.device->progress(); }));
    expect(says_device_gone([&] { scene.device->query(); }));
    expect(says_device_gone([&] { Party{*scene.device}; }));
    QueuePair moved = std::move(party.qp);
    expect(moved.post_recv({}) == Errc::device_gone);
    // Destroying them touches nothing that the parent uses.
    scene.a.reset();
    scene.device.reset();
    scene.channel.reset();
    scene.b.reset();
    return first_wrong;
  });
  CHECK(failed == 0);
  for (int i = 0; i < 20; ++i) REQUIRE(scene.works());
  CHECK(scene.device->query().queue_pairs == 2);
  CHECK(scene.device->query().memory_regions == 2);
}

TEST_CASE("a forked child may open a device of its own and talk to its parent") {
  Scene scene(Progress::thread);
  REQUIRE(scene.works());
  const Address parent = scene.b->address();
  REQUIRE(eventually(others_sleep));
  const int status = in_child([&] {
    Device device = Device::open("127.0.0.1", {.progress = Progress::manual});
    Party party(device);
    if (party.send(parent, 0, 100)) return 1;
    if (await(party.send_cq, 1).size() != 1) return 2;
    return 0;
  });
  CHECK(status == 0);
  CHECK(await(scene.b->recv_cq, 1).size() == 1);
  CHECK(scene.works());
}

TEST_CASE("a child that was forked in the middle of traffic does no harm") {
  Scene scene(Progress::thread);
  std::atomic<bool> stop{false};
  std::atomic<size_t> messages{0};
  std::thread traffic([&] {  // soon allocates nothing: a child must not inherit a held heap
    std::array<WorkCompletion, 4> batch;
    while (!stop.load()) {
      static_cast<void>(scene.a->send(scene.b->address(), 0, 100));
      scene.a->send_cq.poll(batch);
      const size_t count = scene.b->recv_cq.poll(batch);
      for (size_t k = 0; k < count; ++k) static_cast<void>(scene.b->post_recv(0, 0, 100));
      messages += count;
    }
  });
  CHECK(eventually([&] { return messages.load() > 1000; }));
  for (int i = 0; i < 20; ++i) {
    const int status = in_child([&] {
      scene.b.reset();
      scene.device.reset();
      return 0;
    });
    CHECK(status == 0);
    const size_t before = messages.load();
    CHECK(eventually([&] { return messages.load() > before + 10; }));
  }
  stop = true;
  traffic.join();
}

// --- Signals.

namespace {

/// The blocked signals of each thread of this process that has this name.
std::vector<uint64_t> blocked_signals(const std::string& name) {
  std::vector<uint64_t> masks;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    if (comm != name) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:")) masks.push_back(std::stoull(line.substr(7), nullptr, 16));
  }
  return masks;
}

volatile std::sig_atomic_t caught = 0;
pthread_t catcher;

}  // namespace

TEST_CASE("the RNIC thread blocks every signal, and the application's threads keep theirs") {
  sigset_t before;
  REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &before) == 0);
  Device device = Device::open("127.0.0.1");
  sigset_t after;
  REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &after) == 0);
  for (int signal = 1; signal < 65; ++signal)
    CHECK(::sigismember(&before, signal) == ::sigismember(&after, signal));

  REQUIRE(eventually([] { return !blocked_signals("diwarp-rnic").empty(); }));
  for (uint64_t mask : blocked_signals("diwarp-rnic")) {
    for (int signal = 1; signal <= 64; ++signal) {
      // Two cannot be blocked, and two belong to the C library.
      if (signal == SIGKILL || signal == SIGSTOP || signal == 32 || signal == 33) continue;
      CAPTURE(signal);
      CHECK((mask >> (signal - 1) & 1) == 1);
    }
  }
}

TEST_CASE("a signal that interrupts a wait neither ends it nor loses anything") {
  Device device = Device::open("127.0.0.1");
  Party target(device);
  target.post_receives(4, 100);
  struct sigaction action {};
  action.sa_handler = [](int) {
    caught = caught + 1;
    catcher = ::pthread_self();
  };
  struct sigaction old {};
  REQUIRE(::sigaction(SIGUSR1, &action, &old) == 0);
  const pthread_t waiter = ::pthread_self();
  std::thread sender([&] {
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(5ms);
      ::pthread_kill(waiter, SIGUSR1);
    }
    RawSocket socket(Address::parse("127.0.0.1"));
    socket.send(target.address(), to_bytes({.msn = 1, .payload = pattern(10, 1)}));
  });
  const auto completion = target.recv_cq.wait(kPatience);
  sender.join();
  REQUIRE(::sigaction(SIGUSR1, &old, nullptr) == 0);
  REQUIRE(completion);
  CHECK(completion->byte_count == 10);
  CHECK(caught > 0);
  CHECK(::pthread_equal(catcher, waiter) != 0);
}
