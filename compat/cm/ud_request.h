// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "compat/cm/ud_messages.h"
#include "compat/cm/ud_requests_seen.h"

namespace diwarp::compat {

class UdService;

/// A request to a UD service that waits for the program's answer. One that goes without is
/// rejected.
class UdRequest {
 public:
  UdRequest(UdService& service, uint64_t listener, const UdRequestKey& key)
      : service_(&service), listener_(listener), key_(key) {}
  UdRequest(UdRequest&& other) noexcept
      : service_(std::exchange(other.service_, nullptr)),
        listener_(other.listener_),
        key_(other.key_) {}
  UdRequest& operator=(UdRequest&&) = delete;
  ~UdRequest();

  const Address& requester() const { return key_.requester; }
  /// The number of the request is filled in. Throws Refusal(EINVAL) where it was answered before.
  void answer(UdAnswerMessage message);

 private:
  UdService* service_;  // null: it was answered, or moved
  uint64_t listener_;
  UdRequestKey key_;
};

}  // namespace diwarp::compat
