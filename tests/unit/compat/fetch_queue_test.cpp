// SPDX-License-Identifier: Apache-2.0
#include "compat/common/fetch_queue.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "compat/common/boundary.h"
#include "compat/common/process.h"
#include "support/catch.h"
#include "support/child.h"

using namespace diwarp::compat;
using diwarp::test::in_child;

namespace {

struct Event {
  int number = 0;
  int* counter = nullptr;

  void fetched() {
    if (counter != nullptr) ++*counter;
  }
};
using Queue = FetchQueue<Event>;

bool readable(const Queue& queue) {
  pollfd watched{queue.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

void set_nonblocking(const Queue& queue) {
  ::fcntl(queue.descriptor(), F_SETFL, ::fcntl(queue.descriptor(), F_GETFL) | O_NONBLOCK);
}

/// The errno value that take() is refused with; 0: it was not.
int error_of_take(Queue& queue) {
  return errno_value([&] { queue.take(); });
}

}  // namespace

TEST_CASE("Events are fetched in their order, and the descriptor is readable until then") {
  Queue queue;
  int fetched = 0;
  CHECK_FALSE(readable(queue));
  queue.push({1, &fetched});
  queue.push({2, &fetched});
  CHECK(readable(queue));
  CHECK(queue.take().number == 1);
  CHECK(readable(queue));
  CHECK(queue.take().number == 2);
  CHECK_FALSE(readable(queue));
  CHECK(fetched == 2);
}

TEST_CASE("Without an event a descriptor that does not wait gives EAGAIN, whatever errno was") {
  Queue queue;
  set_nonblocking(queue);
  errno = 0;
  CHECK(error_of_take(queue) == EAGAIN);
  queue.push({1});
  CHECK(queue.take().number == 1);
  CHECK(error_of_take(queue) == EAGAIN);
}

TEST_CASE("A duplicate of the descriptor decides as well whether a call waits") {
  Queue queue;
  const int other = ::dup(queue.descriptor());
  ::fcntl(other, F_SETFL, ::fcntl(other, F_GETFL) | O_NONBLOCK);
  CHECK(error_of_take(queue) == EAGAIN);
  ::close(other);
}

TEST_CASE("A purged event is not fetched, not counted, and leaves nothing to read") {
  Queue queue;
  int fetched = 0;
  queue.push({1, &fetched});
  queue.push({2});
  queue.push({1, &fetched});
  CHECK(queue.purge([](const Event& event) { return event.number == 1; }).size() == 2);
  CHECK(queue.take().number == 2);
  CHECK(fetched == 0);
  set_nonblocking(queue);
  CHECK(error_of_take(queue) == EAGAIN);
  CHECK_FALSE(readable(queue));
}

TEST_CASE("A thread that waits is woken by an event") {
  Queue queue;
  std::atomic<int> got{0};
  std::thread waiting([&] { got = queue.take().number; });
  queue.push({7});
  waiting.join();
  CHECK(got == 7);
}

TEST_CASE("Closing ends the waits of threads, and refuses events and waits") {
  Queue queue;
  std::atomic<int> error{0};
  std::thread waiting([&] { error = error_of_take(queue); });
  CHECK(queue.close().empty());
  waiting.join();
  CHECK(error == EBADF);
  CHECK_FALSE(queue.push({1}));
  CHECK(error_of_take(queue) == EBADF);
}

TEST_CASE("Closing gives what nobody fetched") {
  Queue queue;
  queue.push({1});
  CHECK(queue.close().size() == 1);
}

TEST_CASE("A thread that is cancelled while it waits ends, and the queue goes on") {
  Queue queue;
  std::atomic<bool> returned{false};
  std::thread waiting([&] {
    error_of_take(queue);
    returned = true;
  });
  ::pthread_cancel(waiting.native_handle());
  waiting.join();
  CHECK_FALSE(returned);
  queue.push({3});
  CHECK(queue.take().number == 3);
  CHECK(queue.close().empty());
}

TEST_CASE("A forked child has no events of a process that uses the library, and takes none") {
  Queue queue;
  set_nonblocking(queue);
  const int result = in_child([&] {
    Process::begin_use();
    queue.push({4});
    const int of_child = in_child([&] {
      queue.purge([](const Event&) { return true; });
      return error_of_take(queue);
    });
    if (of_child != ENODEV) return 1;
    return queue.take().number == 4 ? 0 : 2;
  });
  CHECK(result == 0);
}

TEST_CASE("A child that was forked before the library was used goes on with a queue of events") {
  Queue queue;
  set_nonblocking(queue);
  const int result = in_child([&] {
    Process::begin_use();
    queue.push({5});
    return queue.take().number == 5 ? 0 : 1;
  });
  CHECK(result == 0);
}
