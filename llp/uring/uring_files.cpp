// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <unistd.h>

#include <numeric>

#include "base/unique_fd.h"
#include "llp/uring/uring_queue.h"

namespace diwarp::llp {
namespace {

constexpr int kNobody = -1;  // leaves a place empty

}  // namespace

void UringQueue::register_files() {
  if (io_uring_register_files_sparse(ring_.get(), options_.files) != 0) return;
  if (!files_leave_at_once()) {
    io_uring_unregister_files(ring_.get());
    return;
  }
  free_files_.resize(options_.files);
  std::iota(free_files_.rbegin(), free_files_.rend(), 0);
}

/// Older kernels keep a file for a while after it has left the ring, and its port with it: asked
/// with a pipe, whose other end tells.
bool UringQueue::files_leave_at_once() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  if (!register_file(0, writer.get())) return false;
  writer.reset();
  register_file(0, kNobody);
  pollfd end{.fd = reader.get(), .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0;
}

bool UringQueue::register_file(int place, int fd) {
  return io_uring_register_files_update(ring_.get(), static_cast<unsigned>(place), &fd, 1) == 1;
}

UringFile UringQueue::enlist(int fd) {
  if (free_files_.empty() || !register_file(free_files_.back(), fd)) {
    count(Counter::uring_unregistered);
    return {.number = fd, .registered = false};
  }
  const int place = free_files_.back();
  free_files_.pop_back();
  return {.number = place, .registered = true};
}

void UringQueue::dismiss(const UringFile& file) {
  if (!file.registered) return;
  register_file(file.number, kNobody);
  free_files_.push_back(file.number);
}

}  // namespace diwarp::llp
