// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace diwarp::rnic {

/// Why a connection ends.
enum class RcEnd : uint8_t {
  none,            ///< it does not
  closed,          ///< the peer ended the stream between two messages
  lost,            ///< the stream broke, or ended inside a message
  timed_out,       ///< the peer's TCP answers no more
  bad_crc,         ///< of an FPDU
  protocol_error,  ///< the peer broke a rule of MPA, DDP or RDMAP
  terminated,      ///< the peer sent a Terminate
  bad_receive,     ///< no receive was posted in time, or its memory may not be written
  bad_send,        ///< a request of this side failed
  bad_response,    ///< memory that the peer reads went away
  no_memory,       ///< for what the peer sent
};

/// "the peer closed it": for people.
std::string_view describe(RcEnd reason);

/// The end that this errno of the stream's means.
RcEnd end_of_stream(int error);

}  // namespace diwarp::rnic
