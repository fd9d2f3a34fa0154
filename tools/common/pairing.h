// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <cstdint>
#include <optional>

#include "common/control.h"
#include "common/endpoint.h"

namespace diwarp::tools {

// A row begins with the client's "row" message, which says what the server must know to make its
// endpoint; then these two, each with its receives posted, bring the two endpoints together. Throw
// Failure, LinkDown, PeerGone or the library's Error.

/// Sends `row` (with the client's place and memory added) and connects.
void pair_as_client(Endpoint& endpoint, Control& control, Json row, uint64_t token);

/// Answers a "row" message.
void pair_as_server(Endpoint& endpoint, const Device& device, Control& control, const Json& row,
                    uint64_t token);

/// The same with every receiver of a group, whose endpoints are members of it.
void pair_with_group(Endpoint& endpoint, const Peers& peers, Json row, const Group& group);

/// pair_with_group() where there is a group, else pair_as_client().
void pair_with_servers(Endpoint& endpoint, const Peers& peers, Json row,
                       const std::optional<Group>& group, uint64_t token);

/// RC: ends the connection in order. After this neither end uses its endpoint.
void part(Endpoint& endpoint);

/// Longer than any message of this size, or `count` of them at `rate` bytes a second (0: as fast as
/// it goes), should take to arrive: a datagram that has not come by then is lost.
Duration patience(uint64_t size, uint64_t count = 1, uint64_t rate = 0);

}  // namespace diwarp::tools
