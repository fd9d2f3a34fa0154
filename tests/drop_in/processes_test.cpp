// SPDX-License-Identifier: Apache-2.0
// Processes that fork while they have objects.
#include <unistd.h>

#include "drop_in/random/addresses.h"
#include "drop_in/scene.h"
#include "support/child.h"

using namespace drop_in;
using diwarp::test::in_child;

namespace {

/// Two queue pairs that are connected, and an id on a channel.
struct Parent : Scene {
  Owner<ibv_qp> one = make_queue_pair(IBV_QPT_RC);
  Owner<ibv_qp> other = make_queue_pair(IBV_QPT_RC);
  Owner<rdma_event_channel> events = own(rdma_create_event_channel());
  Owner<rdma_cm_id> id = make_id(events.get());
  random_calls::SocketAddress peer{"127.0.0.1", 4711};

  Parent() { connect(*this, one.get(), other.get()); }

  /// A message goes, and an id resolves an address.
  void check_works() {
    REQUIRE(post_receive(other.get(), 9, sge(64, 64)) == 0);
    ibv_sge data = sge(0, 8);
    ibv_send_wr request{};
    request.sg_list = &data;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    REQUIRE(ibv_post_send(one.get(), &request, &bad) == 0);
    CHECK(wait_for_completion(queue.get()).status == IBV_WC_SUCCESS);
    REQUIRE(rdma_resolve_addr(id.get(), nullptr, peer.get(), 1000) == 0);
    CHECK(wait_for_event(events.get())->event == RDMA_CM_EVENT_ADDR_RESOLVED);
  }
};

/// The number of the first call of libibverbs that does not say ENODEV; 0: there is none.
int first_that_works(const Parent& parent) {
  ibv_wc completion{};
  ibv_async_event event{};
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  const ibv_qp_attr attributes = attributes_of(parent, 0);
  ibv_qp_init_attr_ex init = parent.init(IBV_QPT_RC);
  std::array<std::byte, 64> memory{};
  if (post_receive(parent.one.get(), 1, parent.sge(0, 8)) != ENODEV) return 1;
  if (ibv_poll_cq(parent.queue.get(), 1, &completion) != -ENODEV) return 2;
  if (ibv_req_notify_cq(parent.queue.get(), 0) != ENODEV) return 3;
  if (lead(parent.one.get(), attributes, IBV_QPS_ERR, IBV_QP_STATE) != ENODEV) return 4;
  if (ibv_get_cq_event(parent.channel.get(), &queue, &context) != -1 || errno != ENODEV) return 5;
  if (ibv_get_async_event(parent.context.get(), &event) != -1 || errno != ENODEV) return 6;
  if (ibv_create_qp_ex(parent.context.get(), &init) != nullptr || errno != ENODEV) return 7;
  if (ibv_reg_mr(parent.domain.get(), memory.data(), memory.size(), 0) != nullptr ||
      errno != ENODEV)
    return 8;
  return 0;
}

/// The same of librdmacm.
int first_of_ids_that_works(Parent& parent) {
  rdma_cm_event* event = nullptr;
  rdma_cm_id* made = nullptr;
  if (rdma_get_cm_event(parent.events.get(), &event) != -1 || errno != ENODEV) return 1;
  if (rdma_resolve_addr(parent.id.get(), nullptr, parent.peer.get(), 1000) != -1 || errno != ENODEV)
    return 2;
  if (rdma_listen(parent.id.get(), 1) != -1 || errno != ENODEV) return 3;
  if (rdma_create_id(parent.events.get(), &made, nullptr, RDMA_PS_TCP) != -1 || errno != ENODEV)
    return 4;
  return 0;
}

}  // namespace

TEST_CASE("A forked child that uses its parent's objects gets ENODEV, and the parent goes on") {
  Parent parent;
  CHECK(in_child([&] { return first_that_works(parent); }) == 0);
  CHECK(in_child([&] { return first_of_ids_that_works(parent); }) == 0);
  parent.check_works();
}

TEST_CASE("A forked child destroys what it has inherited, and the parent's stays") {
  Parent parent;
  const int result = in_child([&] {
    if (rdma_destroy_id(parent.id.release()) != 0) return 1;
    if (ibv_destroy_qp(parent.one.release()) != 0) return 2;
    return ibv_dereg_mr(parent.region.release()) == 0 ? 0 : 3;
  });
  CHECK(result == 0);
  parent.check_works();
}

TEST_CASE("A forked child has devices of its own") {
  const Parent parent;
  const int result = in_child([] {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    ibv_context* const context = ibv_open_device(list[0]);
    ibv_pd* const domain = ibv_alloc_pd(context);
    if (domain == nullptr) return 1;
    if (ibv_create_cq(context, 16, nullptr, nullptr, 0) == nullptr) return 2;
    return rdma_create_event_channel() != nullptr ? 0 : 3;
  });
  CHECK(result == 0);
}

TEST_CASE("A forked child becomes another program, and the parent goes on") {
  Parent parent;
  const int result = in_child([] {
    ::execl("/bin/true", "true", nullptr);
    return 1;
  });
  CHECK(result == 0);
  parent.check_works();
}
