// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "diwarp/datagram_options.h"
#include "diwarp/queue_options.h"
#include "diwarp/reliable_options.h"
#include "diwarp/stream_options.h"
#include "diwarp/types.h"

namespace diwarp::provider {

class CompletionQueue;
class SharedReceiveQueue;

/// The parameters of a new queue pair: the public QueuePairInit, with the queues themselves.
struct QueuePairInit {
  QpType type = QpType::rc;
  std::shared_ptr<CompletionQueue> send_cq = {};
  std::shared_ptr<CompletionQueue> recv_cq = {};
  QueuePairCapacity capacity = {};
  DatagramOptions datagram = {};
  bool signal_all = false;
  std::shared_ptr<SharedReceiveQueue> srq = {};
  StreamOptions stream = {};
  ReliableOptions reliable = {};
  uint32_t number = 0;
};

}  // namespace diwarp::provider
