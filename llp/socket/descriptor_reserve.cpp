// SPDX-License-Identifier: Apache-2.0
#include "llp/socket/descriptor_reserve.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

namespace diwarp::llp {

Refusal DescriptorReserve::refuse_next(int listening) {
  if (!refill()) return Refusal::no_descriptor;
  fd_.reset();
  UniqueFd connection(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const bool overtaken = !connection && (errno == EMFILE || errno == ENFILE);
  const bool taken = static_cast<bool>(connection);
  const linger at_once{1, 0};
  if (taken) ::setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  connection.reset();
  refill();
  if (overtaken) return Refusal::no_descriptor;
  return taken ? Refusal::refused : Refusal::nobody;
}

bool DescriptorReserve::refill() {
  if (!fd_) fd_ = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(fd_);
}

}  // namespace diwarp::llp
