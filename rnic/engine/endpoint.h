// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rnic/engine/input_source.h"
#include "rnic/engine/transmit_source.h"

namespace diwarp::rnic {

/// Both roles at one link: a queue pair.
class Endpoint : public InputSource, public TransmitSource {};

}  // namespace diwarp::rnic
