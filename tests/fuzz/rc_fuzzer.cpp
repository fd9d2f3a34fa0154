// SPDX-License-Identifier: Apache-2.0
// RC between a whole device and a peer that the input plays, over a stream in memory.
#include <memory>
#include <optional>

#include "fuzz/fixed_random.h"
#include "fuzz/rc_peer.h"
#include "fuzz/rc_target.h"
#include "llp/memory/memory_network.h"

namespace diwarp::fuzz {
namespace {

constexpr int kMostSteps = 200;
constexpr size_t kMostWaiting = 200000;  // bytes that the peer has sent and diwarp has not taken

class RcScene {
 public:
  explicit RcScene(Input& in)
      : in_(in),
        target_(
            in,
            [this](const WorkCompletion& wc, std::span<const std::byte> memory) {
              if (peer_) peer_->check_delivered(wc, memory);
            },
            [this] { return always_known_ && (!peer_ || peer_->known()); }) {}

  void run() {
    for (unsigned count = in_.below(8); count != 0; --count) target_.post_receive(in_);
    connect();
    for (int step = 0; in_.more() && step < kMostSteps; ++step) act();
    move(SIZE_MAX);
    target_.finish(in_);
    peer_->listen();
  }

 private:
  void connect();
  void act();
  void move(size_t most);

  Input& in_;
  std::optional<RcPeer> peer_;
  bool always_known_ = true;  // of the connections before
  RcTarget target_;
};

/// A start-up that fails leaves the queue pair without a connection, and the peer alone.
void RcScene::connect() {
  if (peer_) always_known_ = always_known_ && peer_->known();
  const std::optional<RcStart> start = start_up(in_);
  const unsigned how = in_.u8();
  auto ends = llp::memory_stream_pair((how & 1U) != 0 ? 2048 : size_t{1} << 17,
                                      (how & 2U) != 0 ? 256 : 1460);
  peer_.emplace(
      std::move(ends.second), start.value_or(RcStart{}),
      [this](unsigned which) { return target_.stag(which); }, target_.output());
  if (!start) return;
  peer_->make_ready((how & 0x1CU) != 0x1CU);
  std::vector<std::byte> leftover;
  if ((how & 0x20U) != 0) {
    peer_->act(in_);
    leftover = peer_->stream().take_waiting();
  }
  target_.connect(*start, std::move(ends.first), std::move(leftover));
  target_.settle();
}

void RcScene::act() {
  switch (in_.below(8)) {
    case 0:
    case 1:
    case 2:
      peer_->act(in_);
      break;
    case 3:
      move(1 + in_.u8());
      break;
    case 4:
      move(SIZE_MAX);
      break;
    case 5:
      target_.poll();
      break;
    default:
      if (target_.act(in_)) connect();
  }
  if (peer_->stream().waiting() > kMostWaiting) move(SIZE_MAX);
  if (peer_->stream().waiting() > kMostWaiting) peer_->stream().close();
}

void RcScene::move(size_t most) {
  peer_->push(most);
  target_.settle();
  peer_->listen();
}

}  // namespace
}  // namespace diwarp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  diwarp::fuzz::restart_random();
  diwarp::fuzz::Input in(data, size);
  diwarp::fuzz::RcScene scene(in);
  scene.run();
  return 0;
}
