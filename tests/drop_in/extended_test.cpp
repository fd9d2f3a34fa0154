// SPDX-License-Identifier: Apache-2.0
// The newer ways of posting (ibv_wr_*) and of polling (ibv_start_poll), between two queue pairs of
// this process. What arrives is looked at.
#include <endian.h>

#include <chrono>

#include "drop_in/scene.h"

using namespace drop_in;

namespace {

constexpr uint64_t kRcOperations =
    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
    IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
constexpr uint64_t kUdOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr size_t kRouteHeader = 40;  // before what a UD receive gets

/// A completion, by all its readers.
struct Seen {
  uint64_t wr_id;
  ibv_wc_status status;
  ibv_wc_opcode opcode;
  uint32_t byte_len;
  uint32_t immediate;
  uint32_t invalidated;
  uint32_t qp_num;
  uint32_t src_qp;
  unsigned flags;
};

Seen read_all(ibv_cq_ex* queue) {
  CHECK(ibv_wc_read_vendor_err(queue) == 0);
  CHECK(ibv_wc_read_slid(queue) == 0);
  CHECK(ibv_wc_read_sl(queue) == 0);
  CHECK(ibv_wc_read_dlid_path_bits(queue) == 0);
  return {queue->wr_id,
          queue->status,
          ibv_wc_read_opcode(queue),
          ibv_wc_read_byte_len(queue),
          be32toh(ibv_wc_read_imm_data(queue)),
          ibv_wc_read_invalidated_rkey(queue),
          ibv_wc_read_qp_num(queue),
          ibv_wc_read_src_qp(queue),
          ibv_wc_read_wc_flags(queue)};
}

/// A device, an extended completion queue, and two queue pairs that have the newer way of posting.
struct Extended : Scene {
  Owner<ibv_cq> completions;
  ibv_cq_ex* queue_ex = nullptr;
  Owner<ibv_qp> one;
  Owner<ibv_qp> other;
  ibv_qp_ex* poster = nullptr;

  Extended(ibv_qp_type type, uint64_t operations) {
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 64;
    wanted.wc_flags = IBV_WC_STANDARD_FLAGS;
    queue_ex = ibv_create_cq_ex(context.get(), &wanted);
    REQUIRE(queue_ex != nullptr);
    completions.reset(ibv_cq_ex_to_cq(queue_ex));
    one = make(type, operations);
    other = make(type, operations);
    poster = ibv_qp_to_qp_ex(one.get());
    REQUIRE(poster != nullptr);
  }

  Owner<ibv_qp> make(ibv_qp_type type, uint64_t operations) const {
    ibv_qp_init_attr_ex asked = init(type);
    asked.send_cq = asked.recv_cq = completions.get();
    asked.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    asked.send_ops_flags = operations;
    return own(ibv_create_qp_ex(context.get(), &asked));
  }

  /// Begins a request with this number.
  void start(uint64_t number) {
    ibv_wr_start(poster);
    name(number);
  }
  void name(uint64_t number) {
    poster->wr_id = number;
    poster->wr_flags = IBV_SEND_SIGNALED;
  }
  void set_sge(size_t from, size_t length) {
    ibv_wr_set_sge(poster, region->lkey, address(from), static_cast<uint32_t>(length));
  }
  void complete() { REQUIRE(ibv_wr_complete(poster) == 0); }

  Seen next() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    ibv_poll_cq_attr attributes{};
    while (ibv_start_poll(queue_ex, &attributes) != 0)
      REQUIRE(std::chrono::steady_clock::now() < deadline);
    const Seen seen = read_all(queue_ex);
    ibv_end_poll(queue_ex);
    return seen;
  }
  /// The next two, in the order of their numbers.
  std::pair<Seen, Seen> next_two() {
    const Seen first = next(), second = next();
    return first.wr_id < second.wr_id ? std::pair(first, second) : std::pair(second, first);
  }
  /// The completion of the request `number`, which succeeded and has this kind.
  void expect(uint64_t number, ibv_wc_opcode opcode) {
    const Seen seen = next();
    CHECK(seen.wr_id == number);
    CHECK(seen.status == IBV_WC_SUCCESS);
    CHECK(seen.opcode == opcode);
    CHECK(seen.qp_num == one->qp_num);
  }
};

struct ExtendedRc : Extended {
  ExtendedRc() : Extended(IBV_QPT_RC, kRcOperations) { connect(*this, one.get(), other.get()); }

  /// Receives into bytes 4096 to 4351, as request 100.
  void expect_message() { REQUIRE(post_receive(other.get(), 100, sge(4096, 256)) == 0); }
  Seen message(uint64_t number) {
    const auto [sent, received] = next_two();
    CHECK(sent.wr_id == number);
    CHECK(sent.opcode == IBV_WC_SEND);
    CHECK(sent.status == IBV_WC_SUCCESS);
    CHECK(received.wr_id == 100);
    CHECK(received.opcode == IBV_WC_RECV);
    CHECK(received.status == IBV_WC_SUCCESS);
    CHECK(received.qp_num == other->qp_num);
    return received;
  }
};

struct ExtendedUd : Extended {
  Owner<ibv_ah> handle = own_handle(*this);

  ExtendedUd() : Extended(IBV_QPT_UD, kUdOperations) {
    make_ready_ud(*this, one.get());
    make_ready_ud(*this, other.get());
  }
  void set_destination() { ibv_wr_set_ud_addr(poster, handle.get(), other->qp_num, kQKey); }
};

}  // namespace

// --- Operations of RC.

TEST_CASE("Where one request of a list cannot be posted ibv_wr_complete posts none") {
  ExtendedRc pair;
  pair.expect_message();
  pair.start(1);
  ibv_wr_send(pair.poster);
  pair.set_sge(0, 5);
  pair.name(2);
  const std::array<ibv_sge, 2> entries{pair.sge(0, 4), pair.sge(4, 4)};
  ibv_wr_atomic_fetch_add(pair.poster, pair.region->rkey, pair.address(64), 1);
  ibv_wr_set_sge_list(pair.poster, entries.size(), entries.data());
  REQUIRE(ibv_wr_complete(pair.poster) == EINVAL);

  pair.start(3);
  ibv_wr_send(pair.poster);
  pair.set_sge(0, 7);
  pair.complete();
  CHECK(pair.message(3).byte_len == 7);
}

TEST_CASE("UD queue pairs take receives from a shared queue, with room for the route header") {
  Scene scene;
  ibv_srq_init_attr wanted{};
  wanted.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
  const Owner<ibv_srq> shared = own(ibv_create_srq(scene.domain.get(), &wanted));
  const auto make = [&] {
    ibv_qp_init_attr_ex asked = scene.init(IBV_QPT_UD);
    asked.srq = shared.get();
    Owner<ibv_qp> made = own(ibv_create_qp_ex(scene.context.get(), &asked));
    make_ready_ud(scene, made.get());
    return made;
  };
  const std::array<Owner<ibv_qp>, 2> targets{make(), make()};
  const Owner<ibv_qp> source = scene.make_queue_pair(IBV_QPT_UD);
  make_ready_ud(scene, source.get());
  const Owner<ibv_ah> handle = own_handle(scene);

  scene.write(0, "ud");
  for (uint64_t i = 0; i < targets.size(); ++i) {
    ibv_sge into = scene.sge(4096 + 64 * i, 64);
    ibv_recv_wr receive{.wr_id = 10 + i, .next = nullptr, .sg_list = &into, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    REQUIRE(ibv_post_srq_recv(shared.get(), &receive, &bad) == 0);
    ibv_sge from = scene.sge(0, 2);
    ibv_send_wr send{};
    send.wr_id = i;
    send.sg_list = &from;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    send.wr.ud = {.ah = handle.get(), .remote_qpn = targets[i]->qp_num, .remote_qkey = kQKey};
    ibv_send_wr* bad_send = nullptr;
    REQUIRE(ibv_post_send(source.get(), &send, &bad_send) == 0);
    for (int n = 0; n < 2; ++n) {
      const ibv_wc seen = wait_for_completion(scene.queue.get());
      CHECK(seen.status == IBV_WC_SUCCESS);
      if (seen.wr_id < 10) continue;
      CHECK(seen.wr_id == 10 + i);
      CHECK(seen.qp_num == targets[i]->qp_num);
      CHECK(seen.byte_len == kRouteHeader + 2);
      CHECK(scene.text(4096 + 64 * i + kRouteHeader, 2) == "ud");
    }
  }
}

TEST_CASE("ibv_wr_send sends entries, lists of them, and inline data, which may change at once") {
  ExtendedRc pair;
  pair.write(0, "first second");
  std::array<char, 7> own_text{"inline"};
  SECTION("one entry") {
    pair.expect_message();
    pair.start(1);
    ibv_wr_send(pair.poster);
    pair.set_sge(0, 5);
    pair.complete();
    CHECK(pair.message(1).byte_len == 5);
    CHECK(pair.text(4096, 5) == "first");
  }
  SECTION("a list of entries") {
    pair.expect_message();
    const std::array<ibv_sge, 2> entries{pair.sge(6, 6), pair.sge(0, 5)};
    pair.start(2);
    ibv_wr_send(pair.poster);
    ibv_wr_set_sge_list(pair.poster, entries.size(), entries.data());
    pair.complete();
    CHECK(pair.message(2).byte_len == 11);
    CHECK(pair.text(4096, 11) == "secondfirst");
  }
  SECTION("inline data") {
    pair.expect_message();
    pair.start(3);
    ibv_wr_send(pair.poster);
    ibv_wr_set_inline_data(pair.poster, own_text.data(), 6);
    own_text.fill('x');
    pair.complete();
    CHECK(pair.message(3).byte_len == 6);
    CHECK(pair.text(4096, 6) == "inline");
  }
  SECTION("a list of inline data") {
    pair.expect_message();
    const std::array<ibv_data_buf, 2> parts{{{own_text.data() + 2, 4}, {own_text.data(), 2}}};
    pair.start(4);
    ibv_wr_send(pair.poster);
    ibv_wr_set_inline_data_list(pair.poster, parts.size(), parts.data());
    pair.complete();
    CHECK(pair.message(4).byte_len == 6);
    CHECK(pair.text(4096, 6) == "linein");
  }
  SECTION("nothing") {
    pair.expect_message();
    pair.start(5);
    ibv_wr_send(pair.poster);
    ibv_wr_set_inline_data(pair.poster, nullptr, 0);
    pair.complete();
    CHECK(pair.message(5).byte_len == 0);
  }
}

TEST_CASE("ibv_wr_rdma_write and ibv_wr_rdma_read move bytes, in one list with others") {
  ExtendedRc pair;
  pair.write(0, "written");
  pair.write(1024, "to read");
  pair.start(1);
  ibv_wr_rdma_write(pair.poster, pair.region->rkey, pair.address(2048));
  pair.set_sge(0, 7);
  pair.name(2);
  ibv_wr_rdma_read(pair.poster, pair.region->rkey, pair.address(1024));
  pair.set_sge(3072, 7);
  pair.complete();
  pair.expect(1, IBV_WC_RDMA_WRITE);
  pair.expect(2, IBV_WC_RDMA_READ);
  CHECK(pair.text(2048, 7) == "written");
  CHECK(pair.text(3072, 7) == "to read");
}

TEST_CASE("ibv_wr_atomic_cmp_swp and ibv_wr_atomic_fetch_add change a word, and give the old one") {
  ExtendedRc pair;
  const auto word = [&](size_t from) {
    uint64_t value = 0;
    std::memcpy(&value, &pair.memory[from], sizeof value);
    return value;
  };
  const uint64_t before = 5;
  std::memcpy(&pair.memory[512], &before, sizeof before);
  pair.start(1);
  ibv_wr_atomic_fetch_add(pair.poster, pair.region->rkey, pair.address(512), 3);
  pair.set_sge(0, 8);
  pair.name(2);
  ibv_wr_atomic_cmp_swp(pair.poster, pair.region->rkey, pair.address(512), 8, 70);
  pair.set_sge(8, 8);
  pair.complete();
  pair.expect(1, IBV_WC_FETCH_ADD);
  pair.expect(2, IBV_WC_COMP_SWAP);
  CHECK(word(0) == 5);
  CHECK(word(8) == 8);
  CHECK(word(512) == 70);
}

TEST_CASE("ibv_wr_bind_mw lends memory under a key, and ibv_wr_local_inv takes it back") {
  ExtendedRc pair;
  pair.write(0, "windowed");
  const auto window = own(ibv_alloc_mw(pair.domain.get(), IBV_MW_TYPE_2));
  const uint32_t key = ibv_inc_rkey(window->rkey);
  const ibv_mw_bind_info bound{pair.region.get(), pair.address(2048), 64,
                               IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
  // The peer lends, as a window is for the queue pair that bound it.
  ibv_qp_ex* const lender = ibv_qp_to_qp_ex(pair.other.get());
  const auto lend = [&](uint64_t number, auto request) {
    ibv_wr_start(lender);
    lender->wr_id = number;
    lender->wr_flags = IBV_SEND_SIGNALED;
    request();
    REQUIRE(ibv_wr_complete(lender) == 0);
    const Seen seen = pair.next();
    CHECK(seen.wr_id == number);
    CHECK(seen.status == IBV_WC_SUCCESS);
    return seen.opcode;
  };
  CHECK(lend(1, [&] { ibv_wr_bind_mw(lender, window.get(), key, &bound); }) == IBV_WC_BIND_MW);
  pair.start(2);
  ibv_wr_rdma_write(pair.poster, key, pair.address(2048));
  pair.set_sge(0, 8);
  pair.complete();
  pair.expect(2, IBV_WC_RDMA_WRITE);
  // The Write has gone; a Read behind it tells that it has arrived. Taken back before, the window
  // would end the connection.
  pair.start(5);
  ibv_wr_rdma_read(pair.poster, key, pair.address(2048));
  pair.set_sge(3072, 8);
  pair.complete();
  pair.expect(5, IBV_WC_RDMA_READ);
  CHECK(pair.text(2048, 8) == "windowed");
  CHECK(pair.text(3072, 8) == "windowed");
  CHECK(lend(3, [&] { ibv_wr_local_inv(lender, key); }) == IBV_WC_LOCAL_INV);
  pair.start(4);  // a Read, which cannot succeed before the peer has answered
  ibv_wr_rdma_read(pair.poster, key, pair.address(2048));
  pair.set_sge(3072, 8);
  pair.complete();
  CHECK(pair.next().status != IBV_WC_SUCCESS);
}

TEST_CASE("ibv_wr_send_inv takes back what the peer lent, whose receive tells so") {
  ExtendedRc pair;
  std::array<std::byte, 64> lent{};
  const auto region = own(ibv_reg_mr(pair.domain.get(), lent.data(), lent.size(),
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  pair.write(0, "done");
  pair.expect_message();
  pair.start(1);
  ibv_wr_send_inv(pair.poster, region->rkey);
  pair.set_sge(0, 4);
  pair.complete();
  const Seen received = pair.message(1);
  CHECK((received.flags & IBV_WC_WITH_INV) != 0);
  CHECK(received.invalidated == region->rkey);
  CHECK(pair.text(4096, 4) == "done");
}

// --- Lists.

TEST_CASE("A list with a request that is refused posts none, and so does one that is given up") {
  ExtendedRc pair;
  pair.expect_message();
  pair.start(1);
  ibv_wr_send(pair.poster);
  pair.set_sge(0, 4);
  pair.name(2);
  ibv_wr_send(pair.poster);
  const std::array<ibv_sge, 5> too_many{};
  ibv_wr_set_sge_list(pair.poster, too_many.size(), too_many.data());
  CHECK(ibv_wr_complete(pair.poster) == EINVAL);
  pair.start(3);
  ibv_wr_send(pair.poster);
  std::array<char, 65> long_text{};
  ibv_wr_set_inline_data(pair.poster, long_text.data(), long_text.size());
  CHECK(ibv_wr_complete(pair.poster) == EINVAL);
  pair.start(4);
  pair.set_sge(0, 4);  // of no request
  CHECK(ibv_wr_complete(pair.poster) == EINVAL);
  pair.start(5);
  ibv_wr_send(pair.poster);
  ibv_wr_abort(pair.poster);
  pair.write(0, "real");
  pair.start(6);
  ibv_wr_send(pair.poster);
  pair.set_sge(0, 4);
  pair.complete();
  CHECK(pair.message(6).byte_len == 4);
  CHECK(pair.text(4096, 4) == "real");
}

TEST_CASE("A queue pair that did not ask for the newer way has none, and no foreign operations") {
  const Scene scene;
  for (const auto type : {IBV_QPT_RC, IBV_QPT_UD}) {
    const auto pair = scene.make_queue_pair(type);
    CHECK(ibv_qp_to_qp_ex(pair.get()) == nullptr);
    ibv_qp_init_attr_ex init = scene.init(type);
    init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags =
        type == IBV_QPT_UD ? IBV_QP_EX_WITH_RDMA_READ : IBV_QP_EX_WITH_SEND_WITH_IMM;
    errno = 0;
    CHECK(ibv_create_qp_ex(scene.context.get(), &init) == nullptr);
    CHECK(errno == EOPNOTSUPP);
  }
}

// --- UD.

TEST_CASE("ibv_wr_send over UD goes where ibv_wr_set_ud_addr says, and names its sender") {
  ExtendedUd pair;
  pair.write(0, "datagram");
  REQUIRE(post_receive(pair.other.get(), 100, pair.sge(4096, 256)) == 0);
  pair.start(1);
  ibv_wr_send(pair.poster);
  pair.set_destination();
  pair.set_sge(0, 8);
  pair.complete();
  const auto [sent, received] = pair.next_two();
  CHECK(sent.wr_id == 1);
  CHECK(sent.status == IBV_WC_SUCCESS);
  CHECK(received.wr_id == 100);
  CHECK(received.byte_len == kRouteHeader + 8);
  CHECK(received.src_qp == pair.one->qp_num);
  CHECK(received.flags == IBV_WC_GRH);
  CHECK(pair.text(4096 + kRouteHeader, 8) == "datagram");
}

TEST_CASE("ibv_wr_send_imm over UD brings immediate data, with inline data and without any") {
  ExtendedUd pair;
  for (const bool data : {true, false}) {
    REQUIRE(post_receive(pair.other.get(), 100, pair.sge(4096, 256)) == 0);
    std::array<char, 4> own_text{'t', 'e', 'x', 't'};
    pair.start(1);
    ibv_wr_send_imm(pair.poster, htobe32(0x01020304));
    pair.set_destination();
    if (data) ibv_wr_set_inline_data(pair.poster, own_text.data(), own_text.size());
    pair.complete();
    const auto [sent, received] = pair.next_two();
    CHECK(sent.status == IBV_WC_SUCCESS);
    CHECK(received.byte_len == kRouteHeader + (data ? 4 : 0));
    CHECK((received.flags & IBV_WC_WITH_IMM) != 0);
    CHECK(received.immediate == 0x01020304);
    if (data) CHECK(pair.text(4096 + kRouteHeader, 4) == "text");
  }
}

TEST_CASE("A datagram without a destination is refused, and nothing of its list is posted") {
  ExtendedUd pair;
  pair.start(1);
  ibv_wr_send(pair.poster);
  pair.set_destination();
  pair.name(2);
  ibv_wr_send(pair.poster);
  CHECK(ibv_wr_complete(pair.poster) == EINVAL);
  ibv_wc completion{};
  CHECK(ibv_poll_cq(pair.completions.get(), 1, &completion) == 0);
}

// --- Polling.

TEST_CASE("ibv_next_poll goes on to the next completion, until there is none") {
  ExtendedRc pair;
  constexpr int kMessages = 4;
  for (uint64_t number = 1; number <= kMessages; ++number) {
    pair.start(number);
    ibv_wr_rdma_write(pair.poster, pair.region->rkey, pair.address(2048));
    pair.set_sge(0, 1);
    pair.complete();
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  uint64_t seen = 0;
  while (seen < kMessages) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    ibv_poll_cq_attr attributes{};
    if (const int none = ibv_start_poll(pair.queue_ex, &attributes)) {
      CHECK(none == ENOENT);
      continue;
    }
    do CHECK(pair.queue_ex->wr_id == ++seen);
    while (ibv_next_poll(pair.queue_ex) == 0);
    ibv_end_poll(pair.queue_ex);
  }
  ibv_poll_cq_attr unknown{.comp_mask = 1};
  CHECK(ibv_start_poll(pair.queue_ex, &unknown) == EINVAL);
}

TEST_CASE("Requests are posted while a completion is read, a UD queue pair's Write as well") {
  ExtendedUd pair;
  REQUIRE(post_receive(pair.one.get(), 100, pair.sge(4096, 256)) == 0);
  ibv_sge data = pair.sge(0, 4);
  ibv_send_wr request{};
  request.wr_id = 1;
  request.sg_list = &data;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.wr.ud = {pair.handle.get(), pair.one->qp_num, kQKey};
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(pair.other.get(), &request, &bad) == 0);  // not signaled
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  ibv_poll_cq_attr attributes{};
  while (ibv_start_poll(pair.queue_ex, &attributes) != 0)
    REQUIRE(std::chrono::steady_clock::now() < deadline);
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma = {pair.address(2048), pair.region->rkey};
  CHECK(ibv_post_send(pair.one.get(), &request, &bad) == 0);
  CHECK(read_all(pair.queue_ex).src_qp == pair.other->qp_num);
  ibv_end_poll(pair.queue_ex);
}
