// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/stranger_knowledge.h"
#include "stack/datagram.h"

/// What a stranger sends: as the input says, made right by what it knows as far as the input says
/// so.
namespace diwarp::fuzz {

test::Segment make_segment(Input& input, const StrangerTarget& target,
                           const StrangerKnowledge& known);
/// Right for the association, but for what the input changes. Takes a sequence number where the
/// kind has one.
test::ReliableHeader make_header(Input& input, StrangerKnowledge& known, uint8_t kind);
/// After such a header.
std::vector<std::byte> make_content(Input& input, const StrangerKnowledge& known, uint8_t kind);
/// About something that the target sent.
std::vector<std::byte> make_error_content(Input& input, const StrangerKnowledge& known);

}  // namespace diwarp::fuzz
