// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "llp/tcp/tcp_connector.h"
#include "llp/uring/uring_queue.h"

namespace diwarp::llp {

/// Connections over TCP. Once an engine serves them a ring brings their bytes.
class UringConnector final : public TcpConnector {
 public:
  explicit UringConnector(std::shared_ptr<UringQueue> queue);

  std::unique_ptr<Stream> serve(std::unique_ptr<Stream> stream) override;

 private:
  const std::shared_ptr<UringQueue> queue_;
};

}  // namespace diwarp::llp
