// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/extended_posting.h"

#include <cerrno>
#include <cstring>

#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/log.h"
#include "compat/verbs/queue_pair.h"

namespace diwarp::compat {
namespace {

ExtendedPosting& posting_of(ibv_qp_ex* qp) { return *static_cast<Qp*>(qp)->extended_posting(); }

/// Runs `fill` on a new request; what goes wrong is told by complete().
template <class Fill>
void add(ibv_qp_ex* qp, ibv_wr_opcode opcode, Fill fill) {
  ExtendedPosting& posting = posting_of(qp);
  const int code = errno_value([&] { fill(posting.add(opcode)); });
  if (code != 0) posting.fail(code);
}

void add_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
  add(qp, opcode, [&](ibv_send_wr& request) { request.wr.rdma = {address, rkey}; });
}

void add_atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address,
                uint64_t compare_add, uint64_t swap) {
  add(qp, opcode, [&](ibv_send_wr& request) {
    request.wr.atomic = {address, compare_add, swap, rkey};
  });
}

// --- The functions that programs reach through the queue pair.

void wr_send(ibv_qp_ex* qp) {
  add(qp, IBV_WR_SEND, [](ibv_send_wr&) {});
}
void wr_send_imm(ibv_qp_ex* qp, __be32 immediate) {
  add(qp, IBV_WR_SEND_WITH_IMM, [&](ibv_send_wr& request) { request.imm_data = immediate; });
}
void wr_send_inv(ibv_qp_ex* qp, uint32_t rkey) {
  add(qp, IBV_WR_SEND_WITH_INV, [&](ibv_send_wr& request) { request.invalidate_rkey = rkey; });
}
void wr_local_inv(ibv_qp_ex* qp, uint32_t rkey) {
  add(qp, IBV_WR_LOCAL_INV, [&](ibv_send_wr& request) { request.invalidate_rkey = rkey; });
}
void wr_rdma_write(ibv_qp_ex* qp, uint32_t rkey, uint64_t address) {
  add_rdma(qp, IBV_WR_RDMA_WRITE, rkey, address);
}
void wr_rdma_read(ibv_qp_ex* qp, uint32_t rkey, uint64_t address) {
  add_rdma(qp, IBV_WR_RDMA_READ, rkey, address);
}
void wr_atomic_cmp_swp(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t compare,
                       uint64_t swap) {
  add_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address, compare, swap);
}
void wr_atomic_fetch_add(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t value) {
  add_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address, value, 0);
}
void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* info) {
  add(qp, IBV_WR_BIND_MW, [&](ibv_send_wr& request) { request.bind_mw = {mw, rkey, *info}; });
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, uint32_t number, uint32_t q_key) {
  posting_of(qp).set_destination(ah, number, q_key);
}
void wr_set_sge_list(ibv_qp_ex* qp, size_t count, const ibv_sge* list) {
  quietly([&] { posting_of(qp).set_sges({list, count}); });
}
void wr_set_sge(ibv_qp_ex* qp, uint32_t lkey, uint64_t address, uint32_t length) {
  const ibv_sge sge{address, length, lkey};
  wr_set_sge_list(qp, 1, &sge);
}
void wr_set_inline_data_list(ibv_qp_ex* qp, size_t count, const ibv_data_buf* list) {
  quietly([&] { posting_of(qp).set_inline({list, count}); });
}
void wr_set_inline_data(ibv_qp_ex* qp, void* address, size_t length) {
  const ibv_data_buf part{address, length};
  wr_set_inline_data_list(qp, 1, &part);
}

void wr_start(ibv_qp_ex* qp) { posting_of(qp).start(); }
int wr_complete(ibv_qp_ex* qp) { return posting_of(qp).complete(); }
void wr_abort(ibv_qp_ex* qp) { posting_of(qp).abort(); }

constexpr uint64_t kRcOperations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND |
                                   IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
                                   IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
constexpr uint64_t kUdOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

void check_operations(ibv_qp_type type, uint64_t operations) {
  if (type == IBV_QPT_UD && (operations & ~kUdOperations) != 0)
    unsupported("ibv_create_qp_ex with operations that UD does not have");
  if (type != IBV_QPT_UD && (operations & ~kRcOperations) != 0)
    unsupported("ibv_create_qp_ex with operations that RC over iWARP does not have");
}

void fill_rc_functions(ibv_qp_ex& qp) {
  qp.wr_send_inv = wr_send_inv;
  qp.wr_local_inv = wr_local_inv;
  qp.wr_rdma_write = wr_rdma_write;
  qp.wr_rdma_read = wr_rdma_read;
  qp.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
  qp.wr_atomic_fetch_add = wr_atomic_fetch_add;
  qp.wr_bind_mw = wr_bind_mw;
}

void fill_ud_functions(ibv_qp_ex& qp) {
  qp.wr_send_imm = wr_send_imm;
  qp.wr_set_ud_addr = wr_set_ud_addr;
}

void fill_functions(ibv_qp_ex& qp) {
  qp.wr_send = wr_send;
  qp.wr_set_sge = wr_set_sge;
  qp.wr_set_sge_list = wr_set_sge_list;
  qp.wr_set_inline_data = wr_set_inline_data;
  qp.wr_set_inline_data_list = wr_set_inline_data_list;
  qp.wr_start = wr_start;
  qp.wr_complete = wr_complete;
  qp.wr_abort = wr_abort;
  if (qp.qp_base.qp_type == IBV_QPT_UD)
    fill_ud_functions(qp);
  else
    fill_rc_functions(qp);
}

}  // namespace

ExtendedPosting::ExtendedPosting(Qp& qp, uint64_t operations) : qp_(qp) {
  check_operations(qp.qp_base.qp_type, operations);
  fill_functions(qp);
}

void ExtendedPosting::start() {
  mutex_.lock();
  count_ = 0;
  code_ = 0;
}

void ExtendedPosting::abort() { mutex_.unlock(); }

ibv_send_wr& ExtendedPosting::add(ibv_wr_opcode opcode) {
  if (count_ == pending_.size()) pending_.emplace_back();
  Pending& added = pending_[count_++];
  added.request = {};
  added.sges.clear();
  added.bytes.clear();
  added.request.wr_id = qp_.wr_id;
  added.request.send_flags = qp_.wr_flags & ~unsigned{IBV_SEND_INLINE};
  added.request.opcode = opcode;
  return added.request;
}

void ExtendedPosting::set_destination(ibv_ah* ah, uint32_t number, uint32_t q_key) {
  if (count_ == 0) return fail(EINVAL);
  pending_[count_ - 1].request.wr.ud = {ah, number, q_key};
}

/// A list that is too long fails here, before any request is posted.
void ExtendedPosting::set_sges(std::span<const ibv_sge> sges) {
  if (count_ == 0 || sges.size() > qp_.max_send_sges()) return fail(EINVAL);
  pending_[count_ - 1].sges.assign(sges.begin(), sges.end());
}

/// The data may change from then on.
void ExtendedPosting::set_inline(std::span<const ibv_data_buf> parts) {
  if (count_ == 0) return fail(EINVAL);
  Pending& last = pending_[count_ - 1];
  for (const ibv_data_buf& part : parts) {
    if (part.length > qp_.max_inline_data() - last.bytes.size()) return fail(EINVAL);
    const auto* const first = static_cast<const std::byte*>(part.addr);
    last.bytes.insert(last.bytes.end(), first, first + part.length);
  }
  last.request.send_flags |= IBV_SEND_INLINE;
}

void ExtendedPosting::post() {
  ibv_send_wr* previous = nullptr;
  for (Pending& one : std::span(pending_).first(count_)) {
    if (!one.bytes.empty())
      one.sges.assign(1, {reinterpret_cast<uintptr_t>(one.bytes.data()),
                          static_cast<uint32_t>(one.bytes.size()), 0});
    else if ((one.request.send_flags & IBV_SEND_INLINE) != 0)
      one.sges.clear();
    one.request.sg_list = one.sges.data();
    one.request.num_sge = static_cast<int>(one.sges.size());
    if (previous != nullptr) previous->next = &one.request;
    previous = &one.request;
  }
  if (previous != nullptr) qp_.post_all_sends(&pending_.front().request, count_);
}

int ExtendedPosting::complete() {
  const std::lock_guard lock(mutex_, std::adopt_lock);
  if (code_ != 0) return code_;
  return errno_value([&] { post(); });
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  auto* const extended = reinterpret_cast<ibv_qp_ex*>(qp);
  return static_cast<Qp*>(extended)->extended_posting() != nullptr ? extended : nullptr;
}

}  // extern "C"
