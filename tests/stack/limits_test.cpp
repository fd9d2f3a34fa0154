// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "ddp/stag_table.h"
#include "stack/support.h"

/// The limits that a device names, and what its objects are made with.
namespace diwarp::test {

namespace {

/// What may be made with numbers from 1, or 0, to a limit of the device's.
struct Limited {
  const char* name;
  uint64_t most;
  std::function<void(uint32_t)> make;
};

void check_limit(const Limited& limited) {
  CAPTURE(limited.name);
  const auto most = static_cast<uint32_t>(limited.most);
  CHECK_FALSE(refusal([&] { limited.make(most); }));
  CHECK(refusal([&] { limited.make(most + 1); }) == Errc::invalid_argument);
}

}  // namespace

TEST_CASE("the limits that a device names are those of what it makes") {
  const Device device = Device::open("127.0.0.1");
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 16);
  const DeviceAttributes limits = device.query();
  const auto with = [&](const QueuePairCapacity& capacity) {
    QueuePair(pd, {.send_cq = cq, .recv_cq = cq, .capacity = capacity});
  };
  const auto shared = [&](const SharedReceiveQueueOptions& options) {
    SharedReceiveQueue(pd, options);
  };
  const std::vector<Limited> all = {
      {"requests", limits.max_queue_depth, [&](uint32_t n) { with({.max_send_wr = n}); }},
      {"receives", limits.max_queue_depth, [&](uint32_t n) { with({.max_recv_wr = n}); }},
      {"SGEs of a request", limits.max_sge, [&](uint32_t n) { with({.max_send_sge = n}); }},
      {"SGEs of a receive", limits.max_sge, [&](uint32_t n) { with({.max_recv_sge = n}); }},
      {"inline data", limits.max_inline_data, [&](uint32_t n) { with({.max_inline_data = n}); }},
      {"completions", limits.max_completion_entries,
       [&](uint32_t n) { CompletionQueue(device, n); }},
      {"shared receives", limits.max_shared_receive_depth,
       [&](uint32_t n) { shared({.max_wr = n}); }},
      {"their SGEs", limits.max_shared_receive_sge, [&](uint32_t n) { shared({.max_sge = n}); }},
      {"numbers", kLeastRcNumber + limits.max_queue_pairs - 1,
       [&](uint32_t n) { QueuePair(pd, {.send_cq = cq, .recv_cq = cq, .number = n}); }},
  };
  for (const Limited& limited : all) check_limit(limited);
}

TEST_CASE("the depths of Reads that a device names are those that it connects with") {
  const Device device = Device::open("127.0.0.1");
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 16);
  const DeviceAttributes limits = device.query();
  QueuePair qp(pd, {.send_cq = cq, .recv_cq = cq});
  Listener closed(device, 0);
  const Address nobody = closed.address();
  { Listener gone = std::move(closed); }
  const auto connecting = [&](uint32_t ord, uint32_t ird) {
    return refusal([&] {
      qp.connect(nobody, {.ord = static_cast<uint16_t>(ord), .ird = static_cast<uint16_t>(ird)});
    });
  };
  CHECK(connecting(limits.max_ord, limits.max_ird) != Errc::invalid_argument);
  CHECK(connecting(limits.max_ord + 1U, limits.max_ird) == Errc::invalid_argument);
  CHECK(connecting(limits.max_ord, limits.max_ird + 1U) == Errc::invalid_argument);
}

TEST_CASE("a device holds as many regions and windows as its table of STags") {
  const Device device = Device::open("127.0.0.1");
  const DeviceAttributes limits = device.query();
  CHECK(limits.max_memory_regions == ddp::STagTable::kMaxEntries);
  CHECK(limits.max_windows == ddp::STagTable::kMaxEntries);
}

TEST_CASE("where a device names no limit there may be many") {
  constexpr size_t kMany = 200;
  const Device device = Device::open("127.0.0.1");
  const DeviceAttributes limits = device.query();
  CHECK(limits.max_completion_queues == kUnlimited);
  CHECK(limits.max_shared_receive_queues == kUnlimited);
  CHECK(limits.max_groups == kUnlimited);
  const ProtectionDomain pd(device);
  std::vector<CompletionQueue> queues;
  std::vector<SharedReceiveQueue> shared;
  for (size_t i = 0; i < kMany; ++i) {
    queues.emplace_back(device, 16);
    shared.emplace_back(pd, SharedReceiveQueueOptions{.max_wr = 1});
  }
  QueuePair member(pd, {.type = QpType::ud, .send_cq = queues[0], .recv_cq = queues[0]});
  for (size_t i = 1; i <= kMany; ++i) member.join(Address::parse("239.77.4." + std::to_string(i)));
}

}  // namespace diwarp::test
