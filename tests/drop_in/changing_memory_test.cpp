// SPDX-License-Identifier: Apache-2.0
// Memory that a program changes while it is sent.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "drop_in/scene.h"

using namespace drop_in;

namespace {

constexpr size_t kLength = size_t{1} << 20;
constexpr size_t kStep = 64;  // all is gone through while one message is sent
constexpr int kRequests = 100;

/// A thread that changes some of all bytes again and again, as the processor of a guest does while
/// the guest is moved to another host.
class Changing {
 public:
  explicit Changing(std::vector<unsigned char>& memory)
      : thread_([this, &memory] {
          while (!stopped_)
            for (size_t at = 0; at < memory.size(); at += kStep) ++std::atomic_ref(memory[at]);
        }) {}
  ~Changing() {
    stopped_ = true;
    thread_.join();
  }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;

 private:
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("Memory may change before a Write or a Send of it completes, and the connection stays") {
  const auto opcode = GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_SEND);
  CAPTURE(opcode);
  // What changes must fit its CRC, which connections within a host do not have by themselves. The
  // drop-ins read this once.
  REQUIRE(::setenv("DIWARP_RUN_CRC", "1", 1) == 0);
  const Scene scene;
  std::vector<unsigned char> source(kLength), sink(kLength);
  const auto from = own(ibv_reg_mr(scene.domain.get(), source.data(), kLength, 0));
  const auto to = own(ibv_reg_mr(scene.domain.get(), sink.data(), kLength,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  const auto one = scene.make_queue_pair(IBV_QPT_RC);
  const auto other = scene.make_queue_pair(IBV_QPT_RC);
  connect(scene, one.get(), other.get());
  const ibv_sge received{reinterpret_cast<uintptr_t>(sink.data()), kLength, to->lkey};
  ibv_sge sent{reinterpret_cast<uintptr_t>(source.data()), kLength, from->lkey};
  const Changing changing(source);
  for (int i = 0; i < kRequests; ++i) {
    ibv_send_wr request{};
    request.sg_list = &sent;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {received.addr, to->rkey};
    if (opcode == IBV_WR_SEND) REQUIRE(post_receive(other.get(), 0, received) == 0);
    ibv_send_wr* bad = nullptr;
    REQUIRE(ibv_post_send(one.get(), &request, &bad) == 0);
    for (int left = opcode == IBV_WR_SEND ? 2 : 1; left != 0; --left)
      REQUIRE(wait_for_completion(scene.queue.get()).status == IBV_WC_SUCCESS);
  }
}
