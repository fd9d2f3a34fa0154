// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "diwarp/address.h"
#include "diwarp/connect_options.h"

/// As the public classes of these names.
namespace diwarp::provider {

class QueuePair;

/// Answers with a reject at the latest when it is destroyed.
class ConnectionRequest {
 public:
  virtual ~ConnectionRequest() = default;

  virtual std::span<const std::byte> private_data() const = 0;
  virtual Address peer_address() const = 0;
  virtual uint8_t revision() const = 0;
  virtual RequestedDepths depths() const = 0;
  virtual void accept(QueuePair& queue_pair, const AcceptOptions& options) = 0;
  virtual void reject(std::span<const std::byte> private_data) = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;

  /// Null after `timeout`.
  virtual std::shared_ptr<ConnectionRequest> get_request(Duration timeout) = 0;
  virtual Address address() const = 0;
};

class MeetingPoint {
 public:
  virtual ~MeetingPoint() = default;

  virtual Address address() const = 0;
};

}  // namespace diwarp::provider
