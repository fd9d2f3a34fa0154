// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diwarp/connect_options.h"
#include "rnic/context/negotiated_connection.h"

/// Start-ups that the caller waits for. They run on the device's control path, and throw as
/// QueuePair's calls have it.
namespace diwarp::rnic {

class Control;

/// Throws Error(invalid_destination) where a device on `local` cannot connect to `peer`.
void check_peer(const Address& local, const Address& peer);

/// Connects to a listener: a stream, then MPA's request and reply (RFC 5044 section 7.1).
NegotiatedConnection open_connection(Control& control, const Address& peer,
                                     const ConnectOptions& options);

/// MPA's start-up over a connected descriptor, which is taken over unless the device's connector
/// does not adopt it.
NegotiatedConnection initiate_on(Control& control, int descriptor, const ConnectOptions& options);
NegotiatedConnection respond_on(Control& control, int descriptor, const AcceptOptions& options,
                                Duration timeout);

}  // namespace diwarp::rnic
