// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_end.h"

#include <cerrno>

namespace diwarp::rnic {

std::string_view describe(RcEnd reason) {
  switch (reason) {
    case RcEnd::none:
      break;
    case RcEnd::closed:
      return "it was closed in order";
    case RcEnd::lost:
      return "it was reset, or closed amid a message";
    case RcEnd::timed_out:
      return "the peer's TCP answers no more";
    case RcEnd::bad_crc:
      return "the CRC32C of an FPDU does not match";
    case RcEnd::protocol_error:
      return "the peer broke the protocol";
    case RcEnd::terminated:
      return "the peer sent a Terminate";
    case RcEnd::bad_receive:
      return "no receive was posted in time, or its memory may not be written";
    case RcEnd::bad_send:
      return "a request of this side failed";
    case RcEnd::bad_response:
      return "memory that the peer reads went away";
    case RcEnd::no_memory:
      return "there is no memory for what the peer sent";
  }
  return "it is over";
}

/// When TCP gives a peer up, the kernel reports the last ICMP error instead, if there was one.
RcEnd end_of_stream(int error) {
  const bool silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  // guard(silent-peers): => static_cast<void>(silent); return RcEnd::lost;
  return silent ? RcEnd::timed_out : RcEnd::lost;
}

}  // namespace diwarp::rnic
