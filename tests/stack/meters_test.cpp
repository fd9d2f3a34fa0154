// SPDX-License-Identifier: Apache-2.0
// What a device tells those who watch it, beside its counters.
#include <filesystem>
#include <optional>

#include "stack/support.h"
#include "support/child.h"
#include "support/software.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

uint64_t meter(const Device& device, Meter one) { return software(device).counters().get(one); }

uint64_t waiting(const Device& device) {
  return meter(device, Meter::completions) - meter(device, Meter::completions_polled);
}

bool has_file_of_counters() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(entry, error);
    if (target.string().starts_with("/memfd:diwarp-counters")) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("meters tell of queue pairs and completion queues while they are there") {
  Device device = Device::open("127.0.0.1");
  {
    Party party(device, {.send_entries = 3, .receive_entries = 5});
    CHECK(meter(device, Meter::queue_pairs) == 1);
    CHECK(meter(device, Meter::completion_queues) == 2);
    CHECK(meter(device, Meter::completion_entries) == 8);
    CHECK(device.query().queue_pairs == 1);
  }
  CHECK(meter(device, Meter::queue_pairs) == 0);
  CHECK(meter(device, Meter::completion_queues) == 0);
  CHECK(meter(device, Meter::completion_entries) == 0);
}

TEST_CASE("meters tell how many completions wait, and none of a queue that is gone") {
  Device device = Device::open("127.0.0.1");
  std::optional<Party> a(device), b(device);
  b->post_receives(8, 100);
  for (int i = 0; i < 8; ++i) REQUIRE_FALSE(a->send(b->address(), 0, 100));
  REQUIRE(eventually([&] { return meter(device, Meter::completions) == 16; }));
  CHECK(waiting(device) == 16);
  CHECK(drain(a->send_cq).size() == 8);
  CHECK(waiting(device) == 8);
  a.reset();
  b.reset();
  CHECK(waiting(device) == 0);
}

TEST_CASE("meters tell how long an engine works and how long it looks for work in vain") {
  Device device = Device::open("127.0.0.1", {.progress = Progress::manual});
  for (uint32_t i = 0; i < 2 * rnic::kStepsPerMeasure; ++i) device.progress();
  CHECK(meter(device, Meter::engine_idle_ns) > 0);
  CHECK(meter(device, Meter::engine_work_ns) == 0);
  Party a(device), b(device);
  for (uint32_t i = 0; i < 2 * rnic::kStepsPerMeasure; ++i) {
    REQUIRE_FALSE(b.post_recv(i, 0, 100));
    REQUIRE_FALSE(a.send(b.address(), 0, 100));
    REQUIRE(await(b.recv_cq, 1).size() == 1);
    drain(a.send_cq);
  }
  CHECK(meter(device, Meter::engine_work_ns) > 0);
}

TEST_CASE("a forked child that uses the parent's device changes none of its counters") {
  Device device = Device::open("127.0.0.1", {.progress = Progress::manual});
  Party party(device);
  REQUIRE(has_file_of_counters());
  const auto before = device.counters();
  const Address to = party.address();
  const int result = in_child([&] {
    const Sge sge{party.memory.data(), 10, 0};
    const bool refused =
        party.qp.post_send({.sges = {&sge, 1}, .destination = to}) == Errc::device_gone;
    const bool progress = says_device_gone([&] { device.progress(); });
    return refused && progress && !has_file_of_counters() ? 0 : 1;
  });
  CHECK(result == 0);
  const auto after = device.counters();
  REQUIRE(before.size() == after.size());
  for (size_t i = 0; i < before.size(); ++i) CHECK(before[i].value == after[i].value);
  CHECK(meter(device, Meter::queue_pairs) == 1);
}
