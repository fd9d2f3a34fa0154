// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/types.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>

#include "compat/common/error.h"

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

inline constexpr unsigned kKnownSendFlags = [] {
  unsigned all = 0;
  for (const SendFlag& one : kSendFlags) all |= one.of;
  return all;
}();

/// The library's flags for those of libibverbs. Throws Refusal(EINVAL) for one that is not known.
inline SendFlags send_flags_of(unsigned of) {
  refuse_if((of & ~kKnownSendFlags) != 0, EINVAL);
  SendFlags flags = SendFlags::none;
  for (const SendFlag& one : kSendFlags)
    if ((of & one.of) != 0) flags = flags | one.flag;
  return flags;
}

}  // namespace diwarp::compat
