// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <string>

#include "base/unique_fd.h"
#include "stack/support.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/confined.h"
#include "support/uring.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// One message from one queue pair of the device to another.
bool carries_a_message(Device& device) {
  Party a(device, {.memory = 4096});
  Party b(device, {.memory = 4096});
  if (b.post_recv(1, 0, 100) || a.send(b.address(), 0, 100)) return false;
  return await(b.recv_cq, 1).size() == 1;
}

/// The text that a child process writes to its standard error, at most as much as a pipe holds.
template <class Body>
std::string errors_of_child(Body body, int& status) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  status = in_child([&] {
    ::dup2(writer.get(), STDERR_FILENO);
    return body();
  });
  writer.reset();
  std::string text;
  char buffer[512];
  for (ssize_t n = 0; (n = ::read(reader.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  return text;
}

}  // namespace

TEST_CASE("a device tells which backend it uses, and why") {
  Device plain = Device::open("127.0.0.1", {.io = IoBackend::syscall});
  CHECK(plain.query().io == IoBackend::syscall);
  CHECK(plain.query().io_name == "system calls");
  CHECK(plain.query().datagram_backend.find("system calls") != std::string::npos);
  CHECK(carries_a_message(plain));
  if (!has_io_uring()) return;
  Device ring = Device::open("127.0.0.1", {.io = IoBackend::uring});
  CHECK(ring.query().io == IoBackend::uring);
  CHECK(ring.query().io_name == "io_uring");
  CHECK(ring.query().datagram_backend.find("io_uring") != std::string::npos);
  CHECK(ring.query().stream_backend.find("io_uring") != std::string::npos);
  CHECK(ring.query().io_reason == "asked for");
  CHECK(carries_a_message(ring));
}

TEST_CASE("in this program a device that is told nothing uses io_uring") {
  if (!has_io_uring()) return;
  const DeviceAttributes attributes = Device::open("127.0.0.1").query();
  CHECK(attributes.io == IoBackend::uring);
  CHECK(attributes.io_reason == "chosen automatically");
}

TEST_CASE("a device over system calls makes no ring even to tell what it is") {
  const int status = in_child([] {
    if (!kill_who_makes_a_ring()) return 2;
    const Device device = Device::open("127.0.0.1", {.io = IoBackend::syscall});
    return device.query().io == IoBackend::syscall ? 0 : 3;
  });
  CHECK(status == 0);
}

TEST_CASE("where io_uring is forbidden system calls serve, and one line tells") {
  const bool asked = GENERATE(true, false);
  CAPTURE(asked);
  int status = -1;
  const std::string errors = errors_of_child(
      [asked] {
        if (!forbid_io_uring()) return 2;
        const IoBackend io = asked ? IoBackend::uring : IoBackend::automatic;
        Device device = Device::open("127.0.0.1", {.progress = Progress::manual, .io = io});
        const DeviceAttributes attributes = device.query();
        if (attributes.io != IoBackend::syscall) return 3;
        if (attributes.io_name != "system calls") return 6;
        if (attributes.io_reason.find("forbids it") == std::string::npos) return 4;
        return carries_a_message(device) ? 0 : 5;
      },
      status);
  CHECK(status == 0);
  CHECK((errors.find("io_uring was asked for, but") != std::string::npos) == asked);
  CHECK((errors.find("io_uring was chosen automatically, but") != std::string::npos) == !asked);
  CHECK(std::count(errors.begin(), errors.end(), '\n') == 1);
}
