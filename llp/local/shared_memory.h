// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/unique_fd.h"

namespace diwarp::llp {

/// Memory that this process and one other map. Children that this process forks do not have it.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMemory();

  /// Maps `bytes` of a descriptor that came from another process, and seals it, so that nothing of
  /// it can be taken away: an access there would be a signal. Nothing, with errno, where it is no
  /// memory of which that holds. Does not wait, whatever the descriptor is of.
  static std::optional<SharedMemory> map(int fd, size_t bytes);

  Bytes bytes() const { return bytes_; }

 private:
  friend std::optional<struct NewSharedMemory> new_shared_memory(size_t bytes);
  explicit SharedMemory(Bytes bytes) : bytes_(bytes) {}
  static std::optional<SharedMemory> map_whole(int fd, size_t bytes);

  Bytes bytes_;
};

/// New memory, all zero, and the descriptor by which the other process maps it.
struct NewSharedMemory {
  SharedMemory memory;
  UniqueFd fd;
};

/// Whether the file is memory that can lose nothing of what it has: neither the end nor parts of it
/// (holes), as the process sees to that maps it. Does not wait.
bool may_not_be_punched(int fd);
/// Whether the descriptor is a file of memory. The calls for others may wait, close(2) included.
bool is_memory(int fd);

/// Nothing, with errno, where the system gives none. All of it is there, not only promised.
std::optional<NewSharedMemory> new_shared_memory(size_t bytes);

}  // namespace diwarp::llp
