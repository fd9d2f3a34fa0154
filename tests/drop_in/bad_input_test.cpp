// SPDX-License-Identifier: Apache-2.0
// Wrong arguments of libibverbs' functions: what each call gives, and that nothing has changed.
#include <sys/mman.h>

#include <atomic>
#include <limits>
#include <thread>

#include "drop_in/scene.h"

using namespace drop_in;

namespace {

/// The errno value of a call that gave null; 0: it gave something.
template <class Call>
int error_of_null(Call&& call) {
  errno = 0;
  return call() == nullptr ? errno : 0;
}

/// The same of a call that returned -1.
template <class Call>
int error_of_minus_one(Call&& call) {
  errno = 0;
  return call() == -1 ? errno : 0;
}

int error_of_type(const Scene& scene, ibv_qp_type type) {
  ibv_qp_init_attr_ex init = scene.init(type);
  return error_of_null([&] { return ibv_create_qp_ex(scene.context.get(), &init); });
}

int error_of_region(const Scene& scene, void* address, size_t length, int rights) {
  return error_of_null([&] { return ibv_reg_mr(scene.domain.get(), address, length, rights); });
}

}  // namespace

// --- Kinds that are not there.

TEST_CASE("Types of queue pairs that are not there are refused, and unknown ones") {
  const Scene scene;
  for (const auto type : {IBV_QPT_UC, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_DRIVER})
    CHECK(error_of_type(scene, type) == EOPNOTSUPP);
  CHECK(error_of_type(scene, static_cast<ibv_qp_type>(77)) == EINVAL);
  CHECK(error_of_null([&] { return ibv_alloc_mw(scene.domain.get(), IBV_MW_TYPE_1); }) ==
        EOPNOTSUPP);
  CHECK(error_of_null([&] {
          return ibv_alloc_mw(scene.domain.get(), static_cast<ibv_mw_type>(3));
        }) == EINVAL);
}

// --- Sizes.

TEST_CASE("A completion queue has a size that can be, a channel of its context, and vector 0") {
  const Scene scene;
  ibv_context* const context = scene.context.get();
  for (const int entries : {0, -1, (1 << 20) + 1, std::numeric_limits<int>::max()}) {
    INFO(entries << " entries");
    CHECK(error_of_null([&] { return ibv_create_cq(context, entries, nullptr, nullptr, 0); }) ==
          EINVAL);
    CHECK(ibv_resize_cq(scene.queue.get(), entries) == EINVAL);
  }
  CHECK(scene.queue->cqe == 256);
  CHECK(error_of_null([&] { return ibv_create_cq(context, 16, nullptr, nullptr, 1); }) == EINVAL);
  const auto other = open_device();
  CHECK(error_of_null([&] {
          return ibv_create_cq(other.get(), 16, nullptr, scene.channel.get(), 0);
        }) == EINVAL);
}

TEST_CASE("An extended completion queue has no timestamps, parent domains and unknown flags") {
  const Scene scene;
  const auto error_of = [&](uint64_t what, uint32_t mask, uint32_t flags) {
    ibv_cq_init_attr_ex init{};
    init.cqe = 16;
    init.wc_flags = what;
    init.comp_mask = mask;
    init.flags = flags;
    return error_of_null([&] { return ibv_create_cq_ex(scene.context.get(), &init); });
  };
  CHECK(error_of(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0, 0) == EOPNOTSUPP);
  CHECK(error_of(0, IBV_CQ_INIT_ATTR_MASK_PD, 0) == EOPNOTSUPP);
  CHECK(error_of(0, IBV_CQ_INIT_ATTR_MASK_FLAGS, 1 << 7) == EINVAL);
}

TEST_CASE("A queue pair's capacities are at most the device's") {
  const Scene scene;
  const auto error_of = [&](uint32_t ibv_qp_cap::*field, uint32_t value) {
    ibv_qp_init_attr_ex init = scene.init(IBV_QPT_RC);
    init.cap.*field = value;
    const ibv_qp_cap asked = init.cap;
    const int error = error_of_null([&] { return ibv_create_qp_ex(scene.context.get(), &init); });
    CHECK(init.cap.*field == asked.*field);
    return error;
  };
  for (const auto field :
       {&ibv_qp_cap::max_send_wr, &ibv_qp_cap::max_recv_wr, &ibv_qp_cap::max_send_sge,
        &ibv_qp_cap::max_recv_sge, &ibv_qp_cap::max_inline_data})
    for (const uint32_t value : {70'000U, ~0U}) CHECK(error_of(field, value) == EINVAL);
}

TEST_CASE("A shared receive queue has a size that can be, and a mask that is known") {
  const Scene scene;
  for (const ibv_srq_attr& size : {ibv_srq_attr{0, 1, 0}, ibv_srq_attr{70'000, 1, 0},
                                   ibv_srq_attr{16, 65, 0}, ibv_srq_attr{~0U, ~0U, 0}}) {
    ibv_srq_init_attr init{.srq_context = nullptr, .attr = size};
    CHECK(error_of_null([&] { return ibv_create_srq(scene.domain.get(), &init); }) == EINVAL);
  }
  ibv_srq_init_attr init{.srq_context = nullptr,
                         .attr = {.max_wr = 16, .max_sge = 1, .srq_limit = 0}};
  const auto queue = own(ibv_create_srq(scene.domain.get(), &init));
  ibv_srq_attr attributes{.max_wr = 32, .max_sge = 1, .srq_limit = 4};
  CHECK(ibv_modify_srq(queue.get(), &attributes, IBV_SRQ_LIMIT | 1 << 5) == EINVAL);
  CHECK(ibv_modify_srq(queue.get(), &attributes, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR) == EOPNOTSUPP);
  attributes.srq_limit = ~0U;
  CHECK(ibv_modify_srq(queue.get(), &attributes, IBV_SRQ_LIMIT) == EINVAL);
  REQUIRE(ibv_query_srq(queue.get(), &attributes) == 0);
  CHECK(attributes.srq_limit == 0);
}

TEST_CASE("Objects of two contexts do not go together") {
  const Scene scene;
  const Scene other;
  for (const auto field : {&ibv_qp_init_attr_ex::send_cq, &ibv_qp_init_attr_ex::recv_cq}) {
    ibv_qp_init_attr_ex init = scene.init(IBV_QPT_RC);
    init.*field = other.queue.get();
    CHECK(error_of_null([&] { return ibv_create_qp_ex(scene.context.get(), &init); }) == EINVAL);
    init.*field = nullptr;
    CHECK(error_of_null([&] { return ibv_create_qp_ex(scene.context.get(), &init); }) == EINVAL);
  }
}

// --- Ports, GIDs, partition keys.

TEST_CASE("There is one port, one partition key, and a GID for each address") {
  const Scene scene;
  ibv_context* const context = scene.context.get();
  ibv_port_attr port{};
  CHECK(ibv_query_port(context, 0, &port) == EINVAL);
  CHECK(ibv_query_port(context, 2, &port) == EINVAL);
  REQUIRE(ibv_query_port(context, 1, &port) == 0);
  ibv_gid gid{};
  CHECK(error_of_minus_one([&] { return ibv_query_gid(context, 1, port.gid_tbl_len, &gid); }) ==
        ENODATA);
  CHECK(error_of_minus_one([&] { return ibv_query_gid(context, 1, -1, &gid); }) == EINVAL);
  CHECK(error_of_minus_one([&] { return ibv_query_gid(context, 2, 0, &gid); }) == EINVAL);
  ibv_gid_entry entry{};
  CHECK(ibv_query_gid_ex(context, 1, 1000, &entry, 0) == ENODATA);
  CHECK(ibv_query_gid_ex(context, 1, 0, &entry, 1) == EINVAL);
  __be16 key = 0;
  CHECK(error_of_minus_one([&] { return ibv_query_pkey(context, 1, 1, &key); }) == EINVAL);
}

TEST_CASE("An address handle has a port, a GID index and a GID that are there, and no LID") {
  const Scene scene;
  const ibv_ah_attr right = attributes_of(scene, 0).ah_attr;
  const auto error_of = [&](auto change) {
    ibv_ah_attr attributes = right;
    change(attributes);
    return error_of_null([&] { return ibv_create_ah(scene.domain.get(), &attributes); });
  };
  CHECK(error_of([](ibv_ah_attr& it) { it.port_num = 2; }) == EINVAL);
  CHECK(error_of([](ibv_ah_attr& it) { it.grh.sgid_index = 200; }) == EINVAL);
  CHECK(error_of([](ibv_ah_attr& it) { it.grh.dgid = {}; }) == EINVAL);
  CHECK(error_of([](ibv_ah_attr& it) { it.is_global = 0, it.dlid = 7; }) == EINVAL);
}

// --- Memory.

TEST_CASE("Memory that is not there, or may not be written, is not registered") {
  const Scene scene;
  void* const read_only = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(read_only != MAP_FAILED);
  void* const unmapped = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(::munmap(unmapped, 4096) == 0);
  CHECK(error_of_region(scene, unmapped, 4096, 0) == EFAULT);
  CHECK(error_of_region(scene, read_only, 4096, IBV_ACCESS_LOCAL_WRITE) == EFAULT);
  CHECK(error_of_region(scene, read_only, std::numeric_limits<size_t>::max(), 0) == EFAULT);
  {
    const auto region =
        own(ibv_reg_mr(scene.domain.get(), read_only, 4096, int{IBV_ACCESS_REMOTE_READ}));
  }
  ::munmap(read_only, 4096);
}

TEST_CASE("A region has bytes, and rights that are known and go together") {
  const Scene scene;
  std::array<std::byte, 64> memory{};
  CHECK(error_of_region(scene, memory.data(), 0, 0) == EINVAL);
  CHECK(error_of_region(scene, memory.data(), memory.size(), 1 << 15) == EINVAL);
  CHECK(error_of_region(scene, memory.data(), memory.size(), IBV_ACCESS_REMOTE_WRITE) == EINVAL);
  CHECK(error_of_region(scene, memory.data(), memory.size(), IBV_ACCESS_REMOTE_ATOMIC) == EINVAL);
  CHECK(error_of_region(scene, nullptr, std::numeric_limits<size_t>::max(), IBV_ACCESS_ON_DEMAND) ==
        EOPNOTSUPP);
}

// --- States.

TEST_CASE("A step of a queue pair with wrong attributes leaves it as it is") {
  const Scene scene;
  const auto pair = scene.make_queue_pair(IBV_QPT_RC);
  const ibv_qp_attr right = attributes_of(scene, 0x10000 | 9);
  REQUIRE(lead(pair.get(), right, IBV_QPS_INIT, kInitRc) == 0);
  const auto error_of = [&](auto change) {
    ibv_qp_attr attributes = right;
    change(attributes);
    const int error = lead(pair.get(), attributes, IBV_QPS_RTR, kRtrRc);
    CHECK(state_of(pair.get()) == IBV_QPS_INIT);
    return error;
  };
  CHECK(error_of([](ibv_qp_attr& it) { it.ah_attr.grh.sgid_index = 200; }) == ENODATA);
  CHECK(error_of([](ibv_qp_attr& it) { it.ah_attr.grh.dgid = {}; }) == EINVAL);
  CHECK(error_of([](ibv_qp_attr& it) { it.ah_attr.is_global = 0, it.ah_attr.dlid = 7; }) == EINVAL);
  CHECK(error_of([](ibv_qp_attr& it) { it.ah_attr.port_num = 2; }) == EINVAL);
  CHECK(error_of([](ibv_qp_attr& it) { it.dest_qp_num = 0; }) == EINVAL);
  CHECK(error_of([](ibv_qp_attr& it) { it.dest_qp_num = 1 << 24; }) == EINVAL);
  CHECK(error_of([](ibv_qp_attr& it) { it.path_mtu = static_cast<ibv_mtu>(6); }) == EINVAL);
  CHECK(error_of([](ibv_qp_attr& it) { it.max_dest_rd_atomic = 129; }) == EINVAL);
  CHECK(error_of([](ibv_qp_attr& it) { it.min_rnr_timer = 32; }) == EINVAL);
  CHECK(lead(pair.get(), right, IBV_QPS_RTR, kRtrRc & ~IBV_QP_AV) == EINVAL);
  CHECK(lead(pair.get(), right, IBV_QPS_RTR, kRtrRc | IBV_QP_QKEY) == EINVAL);
  CHECK(lead(pair.get(), right, IBV_QPS_RTS, kRtsRc) == EINVAL);
  CHECK(lead(pair.get(), right, IBV_QPS_SQE, IBV_QP_STATE) == EINVAL);
  CHECK(state_of(pair.get()) == IBV_QPS_INIT);
}

TEST_CASE("Neither a receive in RESET nor a send before RTS is taken") {
  const Scene scene;
  for (const auto type : {IBV_QPT_RC, IBV_QPT_UD}) {
    const auto pair = scene.make_queue_pair(type);
    CHECK(post_receive(pair.get(), 1, scene.sge(0, 8)) == EINVAL);
    const auto handle = own_handle(scene);
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    request.wr.ud = {handle.get(), 4711, kQKey};
    ibv_send_wr* bad = nullptr;
    CHECK(ibv_post_send(pair.get(), &request, &bad) == EINVAL);
    CHECK(bad == &request);
  }
}

// --- Requests.

namespace {

/// Two queue pairs that are connected, and requests that one of them posts: three Sends, of which a
/// test spoils the second.
struct Connected : Scene {
  Owner<ibv_qp> one = make_queue_pair(IBV_QPT_RC);
  Owner<ibv_qp> other = make_queue_pair(IBV_QPT_RC);
  ibv_sge data = sge(0, 8);
  std::array<ibv_sge, 5> too_many{data, data, data, data, data};
  std::array<ibv_send_wr, 3> requests{};

  Connected() {
    connect(*this, one.get(), other.get());
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].wr_id = i + 1;
      requests[i].next = i + 1 < requests.size() ? &requests[i + 1] : nullptr;
      requests[i].sg_list = &data;
      requests[i].num_sge = 1;
      requests[i].opcode = IBV_WR_SEND;
      requests[i].send_flags = IBV_SEND_SIGNALED;
    }
  }

  /// The first alone is posted, and completes.
  int error_of_second() {
    REQUIRE(post_receive(other.get(), 9, sge(64, 64)) == 0);
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(one.get(), requests.data(), &bad);
    CHECK(bad == &requests[1]);
    for (int i = 0; i < 2; ++i) {
      const ibv_wc completion = wait_for_completion(queue.get());
      CHECK(completion.status == IBV_WC_SUCCESS);
      CHECK((completion.wr_id == 1 || completion.wr_id == 9));
    }
    ibv_wc completion{};
    CHECK(ibv_poll_cq(queue.get(), 1, &completion) == 0);
    return error;
  }
};

}  // namespace

TEST_CASE("A peer may do through a queue pair what its access flags say") {
  Connected scene;
  ibv_qp_attr attributes = attributes_of(scene, 0);
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  REQUIRE(lead(scene.other.get(), attributes, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS) ==
          0);
  scene.write(0, "forbid");
  ibv_send_wr& write = scene.requests[2];
  write.opcode = IBV_WR_RDMA_WRITE;
  write.wr.rdma = {.remote_addr = scene.address(4096), .rkey = scene.region->rkey};
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(scene.one.get(), &write, &bad) == 0);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (state_of(scene.other.get()) != IBV_QPS_ERR)
    REQUIRE(std::chrono::steady_clock::now() < deadline);
  CHECK(scene.memory[4096] == std::byte{0});
}

TEST_CASE("A UD queue pair in a group is not destroyed, and joins a group once") {
  Scene scene;
  Owner<ibv_qp> pair = scene.make_queue_pair(IBV_QPT_UD);
  make_ready_ud(scene, pair.get());
  ibv_gid group{};
  group.raw[10] = group.raw[11] = 0xff;
  group.raw[12] = 239;
  group.raw[15] = 77;
  REQUIRE(ibv_detach_mcast(pair.get(), &group, 0) == EINVAL);
  if (ibv_attach_mcast(pair.get(), &group, 0) != 0) {
    WARN("SKIPPED: this host's network takes no groups");
    return;
  }
  CHECK(ibv_attach_mcast(pair.get(), &group, 0) == 0);
  CHECK(ibv_destroy_qp(pair.get()) == EBUSY);
  CHECK(ibv_detach_mcast(pair.get(), &group, 0) == 0);
}

TEST_CASE("A request that is refused is bad_wr, and those before it are posted") {
  Connected scene;
  ibv_send_wr& second = scene.requests[1];
  const ibv_send_wr right = second;
  second.opcode = static_cast<ibv_wr_opcode>(13);
  CHECK(scene.error_of_second() == EINVAL);
  for (const auto opcode : {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    second = right;
    second.opcode = opcode;
    CHECK(scene.error_of_second() == EOPNOTSUPP);
  }
  second = right;
  second.num_sge = -1;
  CHECK(scene.error_of_second() == EINVAL);
  second = right;
  second.sg_list = nullptr;
  CHECK(scene.error_of_second() == EINVAL);
  second = right;
  second.sg_list = scene.too_many.data();
  second.num_sge = 5;
  CHECK(scene.error_of_second() == EINVAL);
  second = right;
  second.send_flags |= 1 << 9;
  CHECK(scene.error_of_second() == EINVAL);
  second = right;
  ibv_sge long_one = scene.sge(0, 65);
  second.sg_list = &long_one;
  second.send_flags |= IBV_SEND_INLINE;
  CHECK(scene.error_of_second() == EINVAL);
}

TEST_CASE("A queue that is full takes no more, and bad_wr says from where") {
  const Scene scene;
  const auto pair = scene.make_queue_pair(IBV_QPT_UD);
  make_ready_ud(scene, pair.get());
  std::array<ibv_recv_wr, 17> requests{};
  ibv_sge sge = scene.sge(0, 64);
  for (size_t i = 0; i < requests.size(); ++i)
    requests[i] = {.wr_id = i,
                   .next = i + 1 < requests.size() ? &requests[i + 1] : nullptr,
                   .sg_list = &sge,
                   .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  CHECK(ibv_post_recv(pair.get(), requests.data(), &bad) == ENOMEM);
  CHECK(bad == &requests[16]);
}

TEST_CASE("bad_wr is left alone where all requests are posted") {
  Connected scene;
  REQUIRE(post_receive(scene.other.get(), 9, scene.sge(64, 64)) == 0);
  scene.requests[0].next = nullptr;
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(scene.one.get(), scene.requests.data(), &bad) == 0);
  CHECK(bad == nullptr);
  for (int i = 0; i < 2; ++i)
    CHECK(wait_for_completion(scene.queue.get()).status == IBV_WC_SUCCESS);
}

TEST_CASE("A UD request names a handle and a queue pair that there can be, and has a UD opcode") {
  const Scene scene;
  const auto pair = scene.make_queue_pair(IBV_QPT_UD);
  make_ready_ud(scene, pair.get());
  const auto handle = own_handle(scene);
  const auto error_of = [&](ibv_wr_opcode opcode, ibv_ah* to, uint32_t number) {
    ibv_send_wr request{};
    request.opcode = opcode;
    request.wr.ud = {to, number, kQKey};
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(pair.get(), &request, &bad);
    CHECK(bad == &request);
    return error;
  };
  CHECK(error_of(IBV_WR_SEND, nullptr, 4711) == EINVAL);
  CHECK(error_of(IBV_WR_SEND, handle.get(), 0) == EINVAL);
  CHECK(error_of(IBV_WR_SEND, handle.get(), 0x10000) == EINVAL);
  CHECK(error_of(IBV_WR_RDMA_READ, handle.get(), 4711) == EINVAL);
}

// --- Destruction.

TEST_CASE("What something else rests on is not destroyed: EBUSY") {
  Scene scene;
  ibv_srq_init_attr size{.srq_context = nullptr,
                         .attr = {.max_wr = 16, .max_sge = 1, .srq_limit = 0}};
  const auto shared = own(ibv_create_srq(scene.domain.get(), &size));
  ibv_qp_init_attr_ex init = scene.init(IBV_QPT_RC);
  init.srq = shared.get();
  CHECK(ibv_destroy_comp_channel(scene.channel.get()) == EBUSY);
  const auto pair = own(ibv_create_qp_ex(scene.context.get(), &init));
  CHECK(ibv_destroy_srq(shared.get()) == EBUSY);
  CHECK(ibv_destroy_cq(scene.queue.get()) == EBUSY);
  CHECK(ibv_dealloc_pd(scene.domain.get()) == EBUSY);
}

TEST_CASE("A domain is not deallocated while a region, a window or an address handle is left") {
  const Scene scene;
  ibv_pd* const domain = scene.domain.get();
  CHECK(ibv_dealloc_pd(domain) == EBUSY);  // the scene's region
  const auto empty = own(ibv_alloc_pd(scene.context.get()));
  {
    const auto window = own(ibv_alloc_mw(empty.get(), IBV_MW_TYPE_2));
    CHECK(ibv_dealloc_pd(empty.get()) == EBUSY);
  }
  ibv_ah_attr attributes = attributes_of(scene, 0).ah_attr;
  const auto handle = own(ibv_create_ah(empty.get(), &attributes));
  CHECK(ibv_dealloc_pd(empty.get()) == EBUSY);
}

TEST_CASE("What was destroyed is refused the second time") {
  const Scene scene;
  const auto twice = [](auto* object, auto destroy) {
    REQUIRE(object != nullptr);
    CHECK(destroy(object) == 0);
    return destroy(object);
  };
  ibv_pd* const domain = scene.domain.get();
  std::array<std::byte, 64> memory{};
  ibv_ah_attr attributes = attributes_of(scene, 0).ah_attr;
  ibv_srq_init_attr size{.srq_context = nullptr,
                         .attr = {.max_wr = 16, .max_sge = 1, .srq_limit = 0}};
  ibv_qp_init_attr_ex init = scene.init(IBV_QPT_RC);
  CHECK(twice(ibv_reg_mr(domain, memory.data(), memory.size(), 0), ibv_dereg_mr) == EINVAL);
  CHECK(twice(ibv_create_ah(domain, &attributes), ibv_destroy_ah) == EINVAL);
  CHECK(twice(ibv_create_srq(domain, &size), ibv_destroy_srq) == EINVAL);
  CHECK(twice(ibv_create_qp_ex(scene.context.get(), &init), ibv_destroy_qp) == EINVAL);
  CHECK(twice(ibv_create_cq(scene.context.get(), 16, nullptr, nullptr, 0), ibv_destroy_cq) ==
        EINVAL);
  CHECK(twice(ibv_create_comp_channel(scene.context.get()), ibv_destroy_comp_channel) == EINVAL);
  CHECK(twice(ibv_alloc_pd(scene.context.get()), ibv_dealloc_pd) == EINVAL);
  errno = 0;
  CHECK(twice(open_device().release(), ibv_close_device) == -1);
  CHECK(errno == EINVAL);
}

TEST_CASE("Of two threads that destroy the same object one does") {
  const Scene scene;
  for (int round = 0; round < 50; ++round) {
    ibv_qp_init_attr_ex init = scene.init(round % 2 == 0 ? IBV_QPT_RC : IBV_QPT_UD);
    ibv_qp* const pair = ibv_create_qp_ex(scene.context.get(), &init);
    REQUIRE(pair != nullptr);
    std::atomic<int> ready{0};
    std::array<int, 2> errors{};
    const auto destroy = [&](int& error) {
      ++ready;
      while (ready < 2) std::this_thread::yield();
      error = ibv_destroy_qp(pair);
    };
    std::thread thread(destroy, std::ref(errors[0]));
    destroy(errors[1]);
    thread.join();
    CHECK(((errors == std::array{0, EINVAL}) || (errors == std::array{EINVAL, 0})));
  }
}

TEST_CASE("A completion queue is destroyed when its events are acknowledged, and not before") {
  Connected scene;
  const auto queue = scene.queue.get();
  REQUIRE(ibv_req_notify_cq(queue, 0) == 0);
  REQUIRE(post_receive(scene.other.get(), 9, scene.sge(64, 64)) == 0);
  scene.requests[0].next = nullptr;
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(scene.one.get(), scene.requests.data(), &bad) == 0);
  ibv_cq* named = nullptr;
  void* context = nullptr;
  REQUIRE(ibv_get_cq_event(scene.channel.get(), &named, &context) == 0);
  REQUIRE(named == queue);
  scene.one.reset();
  scene.other.reset();
  std::atomic<bool> acknowledged{false};
  std::thread thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    acknowledged = true;
    ibv_ack_cq_events(queue, 1);
  });
  scene.queue.reset();  // checks that it goes
  CHECK(acknowledged);
  thread.join();
}
