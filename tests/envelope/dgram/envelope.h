// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stands before dgram's own in the include path.
#include "dgram/envelope_format.h"
#include "sealed_envelope.h"

namespace diwarp::dgram {

using Envelope = SealedEnvelope;
static_assert(EnvelopeFormat<Envelope>);

}  // namespace diwarp::dgram
