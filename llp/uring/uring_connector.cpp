// SPDX-License-Identifier: Apache-2.0
#include "llp/uring/uring_connector.h"

#include <utility>

#include "llp/uring/uring_stream.h"

namespace diwarp::llp {

UringConnector::UringConnector(std::shared_ptr<UringQueue> queue) : queue_(std::move(queue)) {}

std::unique_ptr<Stream> UringConnector::serve(std::unique_ptr<Stream> stream) {
  auto* const tcp = dynamic_cast<TcpStream*>(stream.get());  // tests have streams of other kinds
  if (tcp == nullptr) return stream;
  return UringStream::over(queue_, std::move(*tcp));
}

}  // namespace diwarp::llp
