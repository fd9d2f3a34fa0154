// SPDX-License-Identifier: Apache-2.0
#include "llp/uring/uring_connector.h"

#include <utility>

#include "base/unique_fd.h"
#include "llp/uring/uring_stream.h"

namespace diwarp::llp {

UringConnector::UringConnector(std::shared_ptr<UringQueue> queue) : queue_(std::move(queue)) {}

std::unique_ptr<Stream> UringConnector::serve(std::unique_ptr<Stream> stream) {
  UniqueFd fd(stream->release());
  if (!fd) return stream;
  return UringStream::over(queue_, std::move(fd), stream->peer_address());
}

}  // namespace diwarp::llp
