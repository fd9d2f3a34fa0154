// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_state.h"

#include <string>

#include "diwarp/error.h"

namespace diwarp::rnic {

void require_init(QpState state) {
  if (state == QpState::init) return;
  throw Error(make_error_code(Errc::invalid_state),
              "Only a queue pair in init can be connected, and this one is in " +
                  std::string(to_string(state)) +
                  "; after a connection has ended, modify() it to reset and then to init");
}

}  // namespace diwarp::rnic
