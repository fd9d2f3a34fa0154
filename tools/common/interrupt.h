// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace diwarp::tools {

/// From now on SIGINT and SIGTERM only leave a note; a second one ends the process at once.
void note_interrupts();

/// The same of SIGHUP, unless that is ignored, as under nohup.
void note_hangup();

/// Throws Interrupted if there is such a note. Every loop that waits calls it.
void check_interrupted();

}  // namespace diwarp::tools
