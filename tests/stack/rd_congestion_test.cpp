// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

constexpr uint64_t kMessages = 300;
constexpr size_t kMemory = size_t{1} << 20;

/// `source` sends this many of a few datagrams each, and has them received.
void exchange(RdScene& scene, Party& source) {
  source.fill(pattern(5000, 3));
  for (uint64_t i = 0; i < kMessages; i += 50) {
    scene.b.post_receives(50, 5000);
    for (uint64_t k = i; k < i + 50; ++k) REQUIRE_FALSE(source.send(scene.b.address(), 0, 5000, k));
    const auto received = scene.collect(scene.b.recv_cq, 50);
    REQUIRE(received.size() == 50);
    const auto sent = scene.collect(source.send_cq, 50);
    REQUIRE(sent.size() == 50);
    for (uint64_t k = 0; k < 50; ++k) {
      REQUIRE(received[k].status == WcStatus::success);
      REQUIRE(sent[k].status == WcStatus::success);
      REQUIRE(sent[k].wr_id == i + k);
    }
  }
  CHECK(same(scene.b.bytes(0, 5000), pattern(5000, 3)));
}

/// A file that is removed.
struct File {
  std::string path = "transmissions." + std::to_string(::getpid()) + ".csv";
  ~File() { std::remove(path.c_str()); }
};

/// How often each event stands in the file; the first line must be the one that is documented.
std::map<std::string, uint64_t> events_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  CHECK(line == "seconds,event,number,in_flight,early,window,rate,round_trip_us");
  std::map<std::string, uint64_t> events;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string seconds, event;
    std::getline(words, seconds, ',');
    std::getline(words, event, ',');
    ++events[event];
  }
  return events;
}

}  // namespace

TEST_CASE("rd: with either congestion control all messages come through a lossy network") {
  for (const CongestionControl control : {CongestionControl::bbr, CongestionControl::cubic})
    for (const double loss : {0.0, 0.05, 0.3}) {
      INFO("loss " << loss << (control == CongestionControl::cubic ? ", cubic" : ", bbr"));
      RdScene scene({.seed = 6, .drop = loss, .reorder = loss, .duplicate = loss},
                    {.memory = kMemory, .reliable = {.congestion_control = control}});
      exchange(scene, scene.a);
    }
}

TEST_CASE("rd: the log of transmissions has each one with its cause, and each acknowledgement") {
  const File file;
  uint64_t retransmitted = 0;
  uint64_t sent = 0;
  {
    RdScene scene({.seed = 6, .drop = 0.05}, {.memory = kMemory});
    Party source(*scene.a_device,
                 rd_options({.memory = kMemory, .reliable = {.transmission_log = file.path}}));
    exchange(scene, source);
    retransmitted = scene.a_device->counter("rd_retransmitted");
    sent = scene.a_device->counter("tx_datagrams") - scene.a_device->counter("rd_acknowledgements");
  }
  std::map<std::string, uint64_t> events = events_of(file.path);
  CHECK(retransmitted > 0);
  CHECK(events["lost"] + events["probe"] + events["recalled"] == retransmitted);
  CHECK(events["lost"] > 0);
  CHECK(events["first"] >= kMessages * 4);
  CHECK(events["first"] + retransmitted <= sent);
  CHECK(events["acknowledged"] > 0);
  CHECK(events.size() <= 5);
}

TEST_CASE("rd: a log of transmissions that cannot be written is refused") {
  World world;
  Device& device = world.add_device();
  CHECK_THROWS_AS(
      Party(device, rd_options({.reliable = {.transmission_log = "/nowhere/at/all.csv"}})), Error);
}
