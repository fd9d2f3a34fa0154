// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include <diwarp/verbs.h>

#include "fake_rdma_core/devices.h"
#include "fake_rdma_core/failure.h"
#include "fake_rdma_core/limits.h"

/// Work requests of libibverbs as those of diwarp.
namespace fake {

enum class SgeUse : uint8_t {
  local,        ///< read, or written by receives and atomics
  read_sink,    ///< written by Read Responses
  inline_data,  ///< copied when it is posted; needs no lkey
};

/// The SGEs of a request, in diwarp's terms: the addresses of SGEs count from the iova of their
/// region. An lkey that names nothing becomes 0, which no region has, so that the request fails.
class Sges {
 public:
  Sges(const Adapter& adapter, const ibv_sge* sges, int count, uint32_t most, SgeUse use);
  diwarp::SgeList list() const { return {sges_.data(), count_}; }
  uint64_t length() const;

 private:
  std::array<diwarp::Sge, kMaxSge> sges_;
  size_t count_;
};

/// Without wr_id and SGEs. Refuses with EINVAL what cannot be posted.
diwarp::SendWorkRequest send_request(const ibv_send_wr& request, const ibv_pd* pd);

SgeUse sge_use(const ibv_send_wr& request);

/// The errno for what diwarp answered when a request was posted.
int post_errno(const std::error_code& code);

template <class Queue>
int post_receive(Queue& queue, const Adapter& adapter, const ibv_recv_wr& request, uint32_t most) {
  const Sges sges(adapter, request.sg_list, request.num_sge, most, SgeUse::local);
  return post_errno(queue.post_recv({.wr_id = request.wr_id, .sges = sges.list()}));
}

/// Posts the requests of a list one by one, up to the first that is refused, and returns its errno.
template <class Request, class Post>
int post_each(Request* first, Request** bad, Post&& post) noexcept {
  for (Request* request = first; request != nullptr; request = request->next) {
    int error = 0;
    try {
      error = post(*request);
    } catch (...) {
      error = current_errno();
    }
    if (error == 0) continue;
    *bad = request;
    return error;
  }
  return 0;
}

}  // namespace fake
