// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/connect_options.h"
#include "llp/stream.h"
#include "mpa/negotiated_parameters.h"
#include "provider/listener.h"

namespace diwarp::rnic {

class Control;
class RcQueuePair;

/// A connection whose MPA request came and can be answered.
struct IncomingRequest {
  std::unique_ptr<llp::Stream> stream;
  mpa::StartupFrame frame;  ///< without its private data
  std::vector<std::byte> private_data;
  std::vector<std::byte> leftover;  ///< the bytes that came after the request
};

/// The depths that this side may have: the lower of this and its own proposal is negotiated.
RequestedDepths depths_of(const mpa::StartupFrame& request);

/// The RC queue pair that is to have a connection of this control path. Throws Error
/// (unsupported_operation, invalid_argument) where it cannot.
RcQueuePair& taker_of(provider::QueuePair& queue_pair, const Control& control);

/// A peer that waits for an answer.
class ConnectionRequest final : public provider::ConnectionRequest {
 public:
  ConnectionRequest(std::shared_ptr<Control> control, IncomingRequest request);
  ~ConnectionRequest() override;
  ConnectionRequest(const ConnectionRequest&) = delete;
  ConnectionRequest& operator=(const ConnectionRequest&) = delete;

  std::span<const std::byte> private_data() const override { return request_.private_data; }
  Address peer_address() const override { return peer_; }
  uint8_t revision() const override { return request_.frame.revision; }
  RequestedDepths depths() const override { return depths_; }
  void accept(provider::QueuePair& queue_pair, const AcceptOptions& options) override;
  void reject(std::span<const std::byte> private_data) override;

 private:
  void require_unanswered() const;
  IncomingRequest take_request();

  std::shared_ptr<Control> control_;  // keeps the device
  const Address peer_;
  const RequestedDepths depths_;
  IncomingRequest request_;  // without a stream once it is answered
};

}  // namespace diwarp::rnic
