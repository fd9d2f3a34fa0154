// SPDX-License-Identifier: Apache-2.0
#include "common/pingpong_ends.h"

#include <string>

#include "common/echo.h"
#include "common/failure.h"
#include "common/requests.h"
#include "common/writes.h"

namespace diwarp::tools {

void fail_contents(uint64_t number, size_t size, const Address& peer, size_t at) {
  throw Failure("Message " + std::to_string(number) + " of " + std::to_string(size) +
                " bytes from " + peer.to_string() + " arrived with wrong contents from byte " +
                std::to_string(at) + " on.");
}

bool is_one_sided(Operation operation) { return info_of(operation).manner == Manner::requests; }

EndpointShape near_shape(QpType transport, Operation operation, size_t size) {
  switch (info_of(operation).manner) {
    case Manner::messages:
      return echo_shape(transport, operation, size);
    case Manner::writes:
      return writes_shape(size);
    case Manner::requests:
      return requester_shape(operation, size, 1, transport);
  }
  return {};
}

EndpointShape far_shape(QpType transport, Operation operation, size_t size) {
  if (is_one_sided(operation)) return responder_shape(operation, size, 1, transport);
  return near_shape(transport, operation, size);
}

std::unique_ptr<NearEnd> make_near_end(Endpoint& endpoint, const Peers& peers, bool verify,
                                       Waiting waiting) {
  switch (info_of(endpoint.shape().operation).manner) {
    case Manner::messages:
      return std::make_unique<Pinger>(endpoint, peers, verify);
    case Manner::writes:
      return std::make_unique<WritePinger>(endpoint, peers, verify, waiting);
    case Manner::requests:
      return std::make_unique<RequestPinger>(endpoint, peers, verify);
  }
  return nullptr;
}

std::unique_ptr<FarEnd> make_far_end(Endpoint& endpoint, Control& control, Operation operation,
                                     bool verify, Waiting waiting) {
  switch (info_of(operation).manner) {
    case Manner::messages:
      return std::make_unique<Echoer>(endpoint, control, verify);
    case Manner::writes:
      return std::make_unique<WriteEchoer>(endpoint, control, verify, waiting);
    case Manner::requests:
      return std::make_unique<Responder>(endpoint, control);
  }
  return nullptr;
}

}  // namespace diwarp::tools
