// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llp/input_queue.h"
#include "rnic/engine/endpoint.h"
#include "rnic/engine/engine.h"

/// How both roles of an endpoint come into an engine's service and leave it. With the baton.
namespace diwarp::rnic {

/// As InputSet::attach() has it.
inline void attach_endpoint(Engine& engine, Endpoint& endpoint, int descriptor,
                            llp::InputQueue* queue = nullptr) {
  engine.inputs().attach(endpoint, &endpoint, descriptor, queue);
  engine.transmits().attach(endpoint, &endpoint);
}

/// The same for the endpoint of a link or a stream, which announces itself until set_key() ends
/// that.
template <class Link>
void attach_link(Engine& engine, Endpoint& endpoint, Link& link) {
  attach_endpoint(engine, endpoint, link.descriptor(), link.input_queue());
  link.set_key(static_cast<InputSource*>(&endpoint));
}

inline void detach_endpoint(Engine& engine, Endpoint& endpoint) {
  engine.transmits().detach(endpoint);
  engine.inputs().detach(endpoint);
}

}  // namespace diwarp::rnic
