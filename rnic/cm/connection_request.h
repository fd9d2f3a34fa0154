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

namespace diwarp::rnic {

class Control;
class QueuePair;

/// A connection whose MPA request came and can be answered.
struct IncomingRequest {
  std::unique_ptr<llp::Stream> stream;
  mpa::StartupFrame frame;  ///< without its private data
  std::vector<std::byte> private_data;
  std::vector<std::byte> leftover;  ///< the bytes that came after the request
};

/// The depths that this side may have: the lower of this and its own proposal is negotiated.
RequestedDepths depths_of(const mpa::StartupFrame& request);

/// A peer that waits for an answer. Answers with a reject at the latest when it is destroyed.
class ConnectionRequest {
 public:
  ConnectionRequest(std::shared_ptr<Control> control, IncomingRequest request);
  ~ConnectionRequest();
  ConnectionRequest(const ConnectionRequest&) = delete;
  ConnectionRequest& operator=(const ConnectionRequest&) = delete;

  std::span<const std::byte> private_data() const { return request_.private_data; }
  const Address& peer_address() const { return peer_; }
  uint8_t revision() const { return request_.frame.revision; }
  RequestedDepths depths() const { return depths_; }

  /// As the public calls have them.
  void accept(QueuePair& queue_pair, const AcceptOptions& options);
  void reject(std::span<const std::byte> private_data);

 private:
  void require_unanswered() const;
  IncomingRequest take_request();

  std::shared_ptr<Control> control_;  // keeps the device
  const Address peer_;
  const RequestedDepths depths_;
  IncomingRequest request_;  // without a stream once it is answered
};

}  // namespace diwarp::rnic
