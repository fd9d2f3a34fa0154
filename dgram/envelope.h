// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dgram/crc32c_envelope.h"
#include "dgram/envelope_format.h"

namespace diwarp::dgram {

/// The envelope of all datagrams. It is chosen here, when diwarp is built, and nowhere else.
using Envelope = Crc32cEnvelope;
static_assert(EnvelopeFormat<Envelope>);

}  // namespace diwarp::dgram
