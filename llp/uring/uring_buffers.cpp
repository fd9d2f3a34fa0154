// SPDX-License-Identifier: Apache-2.0
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <numeric>

#include "llp/uring/uring_queue.h"

namespace diwarp::llp {
namespace {

size_t whole_pages(size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

UringBuffers::UringBuffers(unsigned count, size_t bytes, uint16_t group)
    : count_(count), bytes_(bytes), group_(group), filled_(count) {}

UringBuffers::~UringBuffers() {
  if (memory_ != nullptr) ::munmap(memory_, mapped_);
}

int UringBuffers::attach(io_uring& ring) {
  const size_t ring_at = whole_pages(count_ * bytes_);
  mapped_ = ring_at + whole_pages(count_ * sizeof(io_uring_buf));
  void* memory =
      ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  memory_ = static_cast<std::byte*>(memory);
  // The kernel holds the ring's pages: a fork must not have this process write to copies of them.
  ::madvise(memory, mapped_, MADV_DONTFORK);
  ring_ = reinterpret_cast<io_uring_buf_ring*>(memory_ + ring_at);
  io_uring_buf_ring_init(ring_);
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<uintptr_t>(ring_);
  registration.ring_entries = count_;
  registration.bgid = group_;
  const int result = io_uring_register_buf_ring(&ring, &registration, 0);
  if (result != 0) return -result;
  std::vector<uint16_t> all(count_);
  std::iota(all.begin(), all.end(), uint16_t{0});
  give(all);
  return 0;
}

void UringBuffers::give(std::span<const uint16_t> buffers) {
  int offset = 0;
  for (uint16_t buffer : buffers) {
    io_uring_buf_ring_add(ring_, memory_ + buffer * bytes_, static_cast<unsigned>(bytes_), buffer,
                          io_uring_buf_ring_mask(count_), offset++);
  }
  io_uring_buf_ring_advance(ring_, offset);
  free_ += static_cast<unsigned>(buffers.size());
}

}  // namespace diwarp::llp
