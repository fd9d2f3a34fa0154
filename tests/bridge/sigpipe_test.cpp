// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "bridge/fake.h"

/// siw's calls may raise SIGPIPE, of which the application hears nothing.
namespace diwarp::bridge_test {
namespace {

volatile sig_atomic_t raised = 0;

/// Counts the SIGPIPEs of this program while it lives.
class Counting {
 public:
  Counting() {
    struct sigaction counting {};
    counting.sa_handler = [](int) { raised = raised + 1; };
    raised = 0;
    REQUIRE(::sigaction(SIGPIPE, &counting, &before_) == 0);
  }
  ~Counting() { ::sigaction(SIGPIPE, &before_, nullptr); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  int count() const { return raised; }

 private:
  struct sigaction before_ {};
};

/// This program ignores SIGPIPE while it lives.
class Ignored {
 public:
  Ignored() { ::signal(SIGPIPE, SIG_IGN); }
  ~Ignored() { ::signal(SIGPIPE, SIG_DFL); }
  Ignored(const Ignored&) = delete;
  Ignored& operator=(const Ignored&) = delete;
};

bool sigpipe_is_blocked() {
  sigset_t mask;
  return ::pthread_sigmask(SIG_BLOCK, nullptr, &mask) == 0 && ::sigismember(&mask, SIGPIPE) == 1;
}

bool sigpipe_is_pending() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 1;
}

/// SIGPIPE stays pending in this thread as long as it lives.
class Blocked {
 public:
  Blocked() : set_{} {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGPIPE);
    REQUIRE(::pthread_sigmask(SIG_BLOCK, &set_, nullptr) == 0);
  }
  ~Blocked() {
    constexpr timespec kNoWait{};
    ::sigtimedwait(&set_, nullptr, &kNoWait);
    ::pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  sigset_t set_;
};

/// The only device, which says that it is siw.
class Siw {
 public:
  Siw() { set("siw0=127.0.0.1:vendor=626d74"); }
  ~Siw() { set(kDevices); }
  Siw(const Siw&) = delete;
  Siw& operator=(const Siw&) = delete;

 private:
  static void set(const char* devices) {
    ::setenv("FAKE_RDMA_CORE_DEVICES", devices, 1);
    fake().clear();
  }
};

void raise_everywhere() {
  for (const char* function : {"ibv_post_send", "ibv_modify_qp", "ibv_destroy_qp", "rdma_connect",
                               "rdma_accept", "rdma_reject", "rdma_disconnect", "rdma_destroy_id"})
    fake().signal(function, SIGPIPE);
}

/// A connection that passes a message and ends, and one that is rejected.
void use(const Device& device) {
  Party a(device);
  Party b(device);
  join(a.qp, b.qp, device);
  check_message(a, b);
  a.qp.disconnect({.timeout = kPatience});
  CHECK(b.qp.wait_disconnected(kPatience));

  Party c(device);
  Listener listener(device, 0);
  auto rejected = std::async(std::launch::async, [&] {
    return refusal([&] { c.qp.connect(listener.address(), {.timeout = kPatience}); });
  });
  std::optional<ConnectionRequest> request = listener.get_request(kPatience);
  REQUIRE(request);
  request->reject();
  CHECK(rejected.get() == Errc::rejected);
}

}  // namespace

TEST_CASE("A SIGPIPE that a call of siw's raises does not reach the application") {
  const Fresh fresh;
  const Siw siw;
  const Progress progress = GENERATE(Progress::thread, Progress::manual);
  const Device device = Device::open("hw:siw0", {.progress = progress});
  const Counting counting;
  raise_everywhere();
  use(device);
  CHECK(fake().calls("ibv_post_send") > 0);
  CHECK(fake().calls("rdma_reject") > 0);
  CHECK(counting.count() == 0);
  CHECK_FALSE(sigpipe_is_blocked());
  CHECK_FALSE(sigpipe_is_pending());
}

TEST_CASE("A SIGPIPE that the application ignores when it makes a queue pair is left alone") {
  const Fresh fresh;
  const Siw siw;
  const Device device = Device::open("hw:siw0");
  const Ignored ignored;
  Party a(device);
  Party b(device);
  join(a.qp, b.qp, device);
  fake().signal("ibv_post_send", SIGPIPE);
  check_message(a, b);
  const Blocked blocked;
  check_message(a, b, 2);
  CHECK(sigpipe_is_pending());  // as it is kept pending, and nobody takes it away
}

TEST_CASE("A SIGPIPE that the application keeps pending stays so, and no other one becomes so") {
  const Fresh fresh;
  const Siw siw;
  const Device device = Device::open("hw:siw0");
  const Counting counting;
  raise_everywhere();
  {
    const Blocked blocked;
    use(device);
    CHECK_FALSE(sigpipe_is_pending());
    ::raise(SIGPIPE);
    use(device);
    CHECK(sigpipe_is_pending());
    CHECK(sigpipe_is_blocked());
  }
  CHECK(counting.count() == 0);
}

}  // namespace diwarp::bridge_test
