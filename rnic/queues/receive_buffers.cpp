// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/receive_buffers.h"

#include <utility>

namespace diwarp::rnic {

ReceiveBuffers::ReceiveBuffers(TransmitSource& owner, const QueuePairCapacity& capacity,
                               std::shared_ptr<SharedReceiveQueue> shared)
    : owner_(owner),
      shared_(std::move(shared)),
      own_(shared_ ? nullptr
                   : std::make_unique<ReceiveQueue>(capacity.max_recv_wr, capacity.max_recv_sge,
                                                    false)),
      queue_(shared_ ? shared_->queue() : *own_) {}

void ReceiveBuffers::give_back(ReceiveEntry& entry) {
  queue_.give_back(entry);
  if (shared_) shared_->given_back();  // guard(rows:srq-given-back)
}

// Exchanges on both sides: either this one sees the receive, or take_wish() sees the wish.
bool ReceiveBuffers::await() {
  if (shared_)
    shared_->await(*this);
  else
    awaited_.exchange(true);
  return queue_.peek() != nullptr;
}

void ReceiveBuffers::share_given_back() {
  if (shared_) shared_->given_back();
}

void ReceiveBuffers::flush() {
  if (!own_) return;
  own_->publish_withheld();
  while (ReceiveEntry* entry = own_->take_receive())
    complete(*entry, {.source = {}, .status = WcStatus::wr_flush_error});
}

void ReceiveBuffers::clear() {
  done_.clear(queue_);
  if (own_) own_->clear();
}

void ReceiveBuffers::retire() {
  unlink();
  done_.clear(queue_);
}

}  // namespace diwarp::rnic
