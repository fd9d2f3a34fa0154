// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "llp/stream.h"
#include "mpa/negotiated_parameters.h"
#include "rnic/context/peer_timeouts.h"

namespace diwarp::rnic {

/// A connection after MPA's start-up frames, which a queue pair takes over.
struct NegotiatedConnection {
  std::unique_ptr<llp::Stream> stream;
  bool initiator = true;  ///< of the connection; only the initiator may send first
  mpa::NegotiatedParameters parameters = {};
  std::vector<std::byte> leftover = {};      ///< the bytes that came after the peer's frame
  std::vector<std::byte> private_data = {};  ///< of the peer's frame
  PeerTimeoutChoice timeouts = {};
};

}  // namespace diwarp::rnic
