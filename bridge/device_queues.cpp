// SPDX-License-Identifier: Apache-2.0
#include "bridge/device_queues.h"

#include <cerrno>

#include "base/log.h"
#include "bridge/refuse.h"
#include "bridge/shared_receive_queue.h"

namespace diwarp::bridge {
namespace {

ibv_qp* create(const QueuePairParts& parts, const QueuePairCapacity& capacity) {
  ibv_qp_init_attr init{};
  init.send_cq = parts.send_cq->get();
  init.recv_cq = parts.recv_cq->get();
  init.srq = parts.srq ? parts.srq->get() : nullptr;
  init.cap = {.max_send_wr = capacity.max_send_wr,
              .max_recv_wr = parts.srq ? 0 : capacity.max_recv_wr,
              .max_send_sge = capacity.max_send_sge,
              .max_recv_sge = capacity.max_recv_sge,
              .max_inline_data = capacity.max_inline_data};
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;  // the place of each request is freed in time
  Device& device = parts.domain->device();
  ibv_qp* const made = device.verbs().create_qp(parts.domain->get(), &init);
  if (made == nullptr)
    refuse_errno(errno, "The device " + device.name() + " has no queue pair of this capacity");
  return made;
}

}  // namespace

DeviceQueues::DeviceQueues(const QueuePairParts& parts, const QueuePairCapacity& capacity)
    : parts_(parts) {
  Device& device = parts.domain->device();
  queue_pair_ = Owned<ibv_qp>(create(parts, capacity), {device.verbs().destroy_qp});
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (has(device.capabilities(), Capability::atomics))
    attributes.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
  if (const int error =
          modify(*get(), device.verbs(), attributes, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS))
    refuse_errno(error, "A queue pair of " + device.name() + " cannot be made ready");
  sends_.emplace(capacity.max_send_wr, *queue_pair_, *parts.domain);
  receives_.emplace(capacity.max_recv_wr, *queue_pair_, *parts.domain);
  receives_->keep_flushed(true);
  try {
    attach(capacity);
  } catch (...) {
    detach();
    throw;
  }
}

/// The shared table last: what threw is not attached.
void DeviceQueues::attach(const QueuePairCapacity& capacity) {
  parts_.send_cq->attach(*sends_, 0, capacity.max_send_wr);
  parts_.recv_cq->attach(*receives_, 0, capacity.max_recv_wr);
  if (parts_.srq) parts_.recv_cq->attach(parts_.srq->table(), parts_.srq->capacity());
}

/// All but the shared table.
void DeviceQueues::detach() {
  parts_.send_cq->detach(*sends_, keeps_completions_);
  parts_.recv_cq->detach(*receives_, keeps_completions_);
}

// Another thread may poll: it uses the queue pair through the tables until these are detached.
DeviceQueues::~DeviceQueues() {
  if (keeps_completions_) {
    parts_.send_cq->reap();
    parts_.recv_cq->reap();
  }
  detach();
  queue_pair_.reset();
  // Some drivers leave completions behind, whose places are another queue pair's from now on.
  parts_.send_cq->reap();
  parts_.recv_cq->reap();
  if (parts_.srq) parts_.recv_cq->detach(parts_.srq->table(), keeps_completions_);
}

void DeviceQueues::enter_error() {
  if (bridge::enter_error(*get(), parts_.domain->device().verbs()) != 0) flush();
}

void DeviceQueues::flush() {
  parts_.send_cq->flush(*sends_);
  parts_.recv_cq->flush(*receives_);
}

}  // namespace diwarp::bridge
