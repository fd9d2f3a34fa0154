// SPDX-License-Identifier: Apache-2.0
#include "llp/local/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>

namespace diwarp::llp {
namespace {

#ifndef F_SEAL_FUTURE_WRITE  // since Linux 5.1
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

constexpr int kMakersSeals = F_SEAL_SHRINK | F_SEAL_GROW;
/// Nobody else maps it to write, and no hole is punched into it.
constexpr int kMappersSeals = F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
constexpr int kTries = 16;

bool has_seals(int fd, int seals) {
  const int has = ::fcntl(fd, F_GET_SEALS);
  return has >= 0 && (has & seals) == seals;
}

/// A file of huge pages, which may be missing when they are touched, is none of these.
bool is_plain_memory(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

/// All of it is there.
bool has_bytes(int fd, size_t bytes) {
  constexpr size_t kBlock = 512;  // of st_blocks
  struct stat file {};
  return ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size >= 0 &&
         static_cast<size_t>(file.st_size) == bytes &&
         static_cast<size_t>(file.st_blocks) * kBlock >= bytes;
}

/// Beyond the limit of a file's size the system would not only refuse, but send a signal.
bool may_have_files_of(size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}

int allocate(int fd, size_t bytes) {
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    if (error != EINTR) break;  // signals may come all the time
  }
  return error;
}

}  // namespace

bool is_memory(int fd) { return has_seals(fd, 0); }

bool may_not_be_punched(int fd) { return has_seals(fd, kMakersSeals | kMappersSeals); }

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

std::optional<SharedMemory> SharedMemory::map_whole(int fd, size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return std::nullopt;
  ::madvise(memory, bytes, MADV_DONTFORK);
  return SharedMemory({static_cast<std::byte*>(memory), bytes});
}

std::optional<SharedMemory> SharedMemory::map(int fd, size_t bytes) {
  // Seals first: of a file that has none, the other calls may wait.
  const bool fits = bytes != 0 && has_seals(fd, F_SEAL_SHRINK) && is_plain_memory(fd);
  if (!fits) {  // guard(shared-memory): condition => false
    errno = EBADF;
    return std::nullopt;
  }
  auto memory = map_whole(fd, bytes);
  if (!memory) return std::nullopt;
  // Once it is sealed, what is there stays.
  const bool stays = ::fcntl(fd, F_ADD_SEALS, kMappersSeals) == 0 && has_bytes(fd, bytes);
  if (stays) return memory;  // guard(shared-memory): condition => true
  errno = EBADF;
  return std::nullopt;
}

std::optional<NewSharedMemory> new_shared_memory(size_t bytes) {
  if (!may_have_files_of(bytes)) {
    errno = EFBIG;
    return std::nullopt;
  }
  UniqueFd fd(::memfd_create("diwarp", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return std::nullopt;
  if (const int error = allocate(fd.get(), bytes); error != 0) {
    errno = error;
    return std::nullopt;
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, kMakersSeals) != 0) return std::nullopt;
  auto memory = SharedMemory::map_whole(fd.get(), bytes);
  if (!memory) return std::nullopt;
  return NewSharedMemory{.memory = *std::move(memory), .fd = std::move(fd)};
}

}  // namespace diwarp::llp
