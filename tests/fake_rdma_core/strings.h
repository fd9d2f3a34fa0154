// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Names of values, for people.
namespace fake {

const char* node_type_name(int type);
const char* wc_status_name(int status);
const char* event_type_name(int type);
const char* cm_event_name(int type);

}  // namespace fake
