// SPDX-License-Identifier: Apache-2.0
// A ring whose requests the kernel refuses for want of memory: system calls read the input
// meanwhile, and the requests are made again.
#include <sys/socket.h>

#include <array>

#include "datagrams.h"
#include "raw_socket.h"
#include "ring_scene.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"
#include "syscalls.h"

namespace diwarp::llp {
namespace {

using test::FaultsForNow;
using test::numbered;
using test::RawUdp;
using test::receive_texts;
using test::RingScene;
using test::text_pattern;

using Texts = std::vector<std::string>;

TEST_CASE("while every request is refused datagrams are received, and the ring says when to look") {
  RingScene scene;
  if (!scene) return;
  FaultsForNow faults;
  faults->uring_every = 1;
  const auto link = scene.open();
  link->set_key(link.get());
  RawUdp peer;
  const Texts texts = numbered(20);
  Texts received;
  for (const std::string& text : texts) {
    REQUIRE(peer.send(link->local_address(), text));
    // No descriptor tells of it: a thread that sleeps has to look again after a while.
    const Duration silence = scene.queue->silence();
    CHECK((silence == UringQueue::kRetry || silence == Duration::zero()));
    scene.queue->gather(true);
    REQUIRE(scene.queue->next_ready() == link.get());
    REQUIRE(link->receive(scene.batch) == 1);
    received.push_back(test::text_of(scene.batch.datagrams()[0].bytes));
    scene.queue->gather(true);
    REQUIRE(scene.queue->next_ready() == link.get());
    REQUIRE(link->receive(scene.batch) == 0);
  }
  CHECK(received == texts);
  CHECK(scene.count(Counter::uring_refused) >= 20);

  faults->uring_every = 0;
  scene.queue->gather(true);
  REQUIRE(scene.queue->next_ready() == link.get());
  CHECK(link->receive(scene.batch) == 0);
  CHECK(scene.count(Counter::uring_rearmed) == 0);  // there was none before
  CHECK(scene.queue->silence() == Duration::max());
  REQUIRE(peer.send(link->local_address(), "again"));
  CHECK(test::wait_readable(scene.queue->descriptor()));
  CHECK(receive_texts(*link, scene.batch, 1) == Texts{"again"});
}

TEST_CASE("bursts leave in order and once while submissions are refused, now and then or all") {
  RingScene scene;
  if (!scene) return;
  const auto link = scene.open();
  std::array<RawUdp, 3> peers;
  test::Burst burst;  // of messages for alternating peers, so that none is a train
  const Texts texts = numbered(30);
  for (size_t i = 0; i < texts.size(); ++i) burst.add(peers[i % 3].address(), texts[i]);
  FaultsForNow faults;
  faults->uring_every = GENERATE(1U, 2U, 3U);
  CHECK(link->send(burst.get()).sent == texts.size());
  for (size_t i = 0; i < texts.size(); ++i) CHECK(peers[i % 3].receive()->bytes == texts[i]);
  for (const RawUdp& peer : peers) CHECK_FALSE(peer.readable());
  CHECK(scene.count(Counter::uring_refused) > 0);
}

TEST_CASE("a stream loses nothing while requests are refused now and then") {
  RingScene scene;
  if (!scene) return;
  auto [first, writer] = test::tcp_pair();
  FaultsForNow faults;
  faults->uring_every = GENERATE(1U, 2U);
  const auto stream = UringStream::adopt(scene.queue, first.release());
  stream->set_key(stream.get());
  const std::string text = text_pattern(size_t{1} << 20);
  std::string received;
  std::vector<std::byte> buffer(3000);
  size_t sent = 0;
  for (int calls = 0; calls < 1000000 && received.size() < text.size(); ++calls) {
    const auto rest = std::string_view(text).substr(sent, 100'000);
    const ssize_t part = ::send(writer.get(), rest.data(), rest.size(), MSG_DONTWAIT);
    if (part > 0) sent += static_cast<size_t>(part);
    scene.queue->gather(true);
    while (scene.queue->next_ready() != nullptr) {
    }
    const IoResult got = stream->receive(buffer);
    if (got.status == IoStatus::ok) received += test::text_of(Bytes(buffer).first(got.bytes));
  }
  CHECK(received == text);
  CHECK(scene.count(Counter::uring_refused) > 0);
}

TEST_CASE("links go away while every submission is refused") {
  RingScene scene;
  if (!scene) return;
  auto link = scene.open();
  const Address address = link->local_address();
  FaultsForNow faults;
  faults->uring_every = 1;
  link.reset();
  link = scene.open(address);
  CHECK(link->local_address() == address);
}

}  // namespace
}  // namespace diwarp::llp
