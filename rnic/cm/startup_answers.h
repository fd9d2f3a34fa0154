// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "diwarp/attributes.h"
#include "diwarp/connect_options.h"
#include "mpa/negotiated_parameters.h"
#include "rnic/cm/connection_request.h"
#include "rnic/context/negotiated_connection.h"

/// The answers of this side to a peer's start-up frame.
namespace diwarp::rnic {

class Control;

mpa::MpaProposal proposal_of(const AcceptOptions& options);

/// Throws Error(invalid_argument) where the options cannot be told to such a peer.
void check_options(const AcceptOptions& options, const mpa::StartupFrame& request);

/// Answers yes. Throws Error(connection_lost) where the peer is gone.
NegotiatedConnection accept_connection(IncomingRequest request, const AcceptOptions& options);

/// Answers no and ends the connection, such that the answer is not lost.
void reject_connection(Control& control, IncomingRequest request,
                       std::span<const std::byte> private_data);

/// The FPDU that says why a start-up ended (RFC 6581 section 8), as the first of its stream.
std::vector<std::byte> terminate_fpdu(const TerminateCode& code,
                                      const mpa::NegotiatedParameters& parameters);

}  // namespace diwarp::rnic
