// SPDX-License-Identifier: Apache-2.0
#include "diwarp/connection.h"

#include <utility>

#include "provider/device.h"
#include "provider/listener.h"
#include "provider/queue_pair.h"
#include "verbs/handle_access.h"

namespace diwarp {

ConnectionRequest::ConnectionRequest(std::shared_ptr<provider::ConnectionRequest> impl)
    : impl_(std::move(impl)) {}

std::span<const std::byte> ConnectionRequest::private_data() const { return impl_->private_data(); }

Address ConnectionRequest::peer_address() const { return impl_->peer_address(); }

uint8_t ConnectionRequest::revision() const { return impl_->revision(); }

RequestedDepths ConnectionRequest::depths() const { return impl_->depths(); }

void ConnectionRequest::accept(QueuePair& qp, const AcceptOptions& options) {
  impl_->accept(*impl_of(qp), options);
}

void ConnectionRequest::reject(std::span<const std::byte> private_data) {
  impl_->reject(private_data);
}

Listener::Listener(const Device& device, uint16_t port, const ListenOptions& options)
    : impl_(impl_of(device)->make_listener(port, options)) {}

std::optional<ConnectionRequest> Listener::get_request(Duration timeout) {
  std::shared_ptr<provider::ConnectionRequest> request = impl_->get_request(timeout);
  if (!request) return std::nullopt;
  return handle_of<ConnectionRequest>(std::move(request));
}

Address Listener::address() const { return impl_->address(); }

MeetingPoint::MeetingPoint(const Device& device, uint16_t port, const ListenOptions& options)
    : impl_(impl_of(device)->make_meeting_point(port, options)) {}

Address MeetingPoint::address() const { return impl_->address(); }

}  // namespace diwarp
