// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>
#include <system_error>
#include <utility>

namespace diwarp::rnic {

using AsioError = boost::system::error_code;

inline std::error_code to_std(const AsioError& error) {
  return {error.value(), std::system_category()};
}

/// Waits, on the control path, until a descriptor can be read or written that something else owns
/// and uses: a stream, a listener. A handler is given an error where the descriptor cannot be
/// watched or reset() came before; a wait that succeeds promises nothing: a call after it may block
/// still.
class Readiness {
 public:
  explicit Readiness(boost::asio::io_context& context) : descriptor_(context) {}
  ~Readiness() { reset(); }
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  /// Until reset(), which has to come before the descriptor is closed.
  void watch(int descriptor) {
    reset();
    AsioError ignored;  // waits tell
    descriptor_.assign(descriptor, ignored);
  }
  void reset() {
    if (descriptor_.is_open()) descriptor_.release();
  }

  template <class Handler>
  void until_readable(Handler&& handler) {
    descriptor_.async_wait(Descriptor::wait_read, std::forward<Handler>(handler));
  }
  template <class Handler>
  void until_writable(Handler&& handler) {
    descriptor_.async_wait(Descriptor::wait_write, std::forward<Handler>(handler));
  }

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;

  Descriptor descriptor_;
};

}  // namespace diwarp::rnic
