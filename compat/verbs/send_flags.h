// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/types.h>
#include <infiniband/verbs.h>

#include <array>

namespace diwarp::compat {

struct SendFlag {
  unsigned of;
  SendFlags flag;
};
inline constexpr std::array kSendFlags{
    SendFlag{IBV_SEND_FENCE, SendFlags::fence},
    SendFlag{IBV_SEND_SIGNALED, SendFlags::signaled},
    SendFlag{IBV_SEND_SOLICITED, SendFlags::solicited},
    SendFlag{IBV_SEND_INLINE, SendFlags::inline_data},
};

/// The library's flags for those of libibverbs.
inline SendFlags send_flags_of(unsigned of) {
  SendFlags flags = SendFlags::none;
  for (const SendFlag& one : kSendFlags)
    if ((of & one.of) != 0) flags = flags | one.flag;
  return flags;
}

}  // namespace diwarp::compat
