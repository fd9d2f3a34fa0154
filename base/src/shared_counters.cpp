// SPDX-License-Identifier: Apache-2.0
#include "base/shared_counters.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/closed_in_child.h"
#include "base/counters_block.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "diwarp/version.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace diwarp {
namespace {

using counters_block::Entry;
using counters_block::Header;
using counters_block::Kind;

constexpr size_t kEntries = Counters::count() + Counters::meter_count();
constexpr size_t kPage = 4096;

/// The block as the library writes it.
struct Block {
  Header header;
  std::array<Entry, kEntries> table;
  Counters counters;
};
constexpr size_t kBytes = (sizeof(Block) + kPage - 1) / kPage * kPage;
static_assert(kBytes <= counters_block::kByteLimit);

std::atomic<uint32_t> devices_opened{0};

template <size_t N>
void set_text(std::array<char, N>& place, std::string_view text) {
  std::memcpy(place.data(), text.data(), std::min(text.size(), N));
}

Entry entry_of(std::string_view name, size_t offset, Kind kind) {
  Entry entry{.name = {},
              .offset = static_cast<uint32_t>(offsetof(Block, counters) + offset),
              .kind = kind};
  set_text(entry.name, name);
  return entry;
}

void write_table(std::array<Entry, kEntries>& table) {
  size_t next = 0;
  for (size_t i = 0; i < Counters::count(); ++i) {
    const auto counter = static_cast<Counter>(i);
    table[next++] = entry_of(Counters::name(counter), Counters::offset(counter), Kind::sum);
  }
  for (size_t i = 0; i < Counters::meter_count(); ++i) {
    const auto meter = static_cast<Meter>(i);
    const Kind kind = Counters::kind(meter) == MeterKind::gauge ? Kind::gauge : Kind::sum;
    table[next++] = entry_of(Counters::name(meter), Counters::offset(meter), kind);
  }
}

uint64_t boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

/// The magic comes last: a reader that sees it sees the rest.
void publish(Header& header) {
  auto& place = reinterpret_cast<uint64_t&>(header.magic);
  std::atomic_ref(place).store(std::bit_cast<uint64_t>(counters_block::kMagic),
                               std::memory_order_release);
}

/// In memory of zeros.
Counters* write_block(void* memory, const std::string& device) {
  auto* const block = new (memory) Block{};
  Header& header = block->header;
  header.layout = counters_block::kLayout;
  header.bytes = kBytes;
  header.process = static_cast<uint32_t>(::getpid());
  header.device = devices_opened.fetch_add(1) + 1;
  header.entries = kEntries;
  header.table = offsetof(Block, table);
  header.opened = boot_time();
  set_text(header.library, to_string(version()));
  set_text(header.address, device);
  write_table(block->table);
  publish(header);
  return &block->counters;
}

// --- Forks.

/// A mapping that a forked child gets no share of. Places are never freed, and used again: a child
/// that comes at any moment, of a signal handler as well, finds a list that is whole.
struct Place {
  std::atomic<void*> memory{nullptr};  // null: the place is free
  std::atomic<bool> taken{false};
  Place* next = nullptr;
};

std::atomic<Place*> places{nullptr};

Place& take_place() {
  for (Place* place = places.load(); place != nullptr; place = place->next)
    if (!place->taken.exchange(true)) return *place;
  auto* const place = new Place;
  place->taken.store(true);
  place->next = places.load();
  while (!places.compare_exchange_weak(place->next, place)) {
  }
  return *place;
}

/// In a forked child, where the kernel has left a hole (MADV_DONTFORK): zeros of its own, so that
/// not even a call that was under way when the process was forked finds nothing there.
void leave_parent() {
  for (Place* place = places.load(); place != nullptr; place = place->next) {
    void* const memory = place->memory.exchange(nullptr);  // not once more in a child of the child
    if (memory == nullptr) continue;
    ::mmap(memory, kBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  }
}

// Code that shares counters links this file, so the handler is there before main().
[[maybe_unused]] const int installed = pthread_atfork(nullptr, nullptr, &leave_parent);

// --- The file.

/// SIGXFSZ would end a process that makes a file longer than it may.
bool may_have_files() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= kBytes;
}

/// Of a kernel before 6.3, which does not know the flag, the file may be executable.
int create_file() {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int file = ::memfd_create(counters_block::kFileName, flags | MFD_NOEXEC_SEAL);
  if (file >= 0 || errno != EINVAL) return file;
  return ::memfd_create(counters_block::kFileName, flags);
}

/// All memory that it will ever have, for the owner alone to read.
bool set_size(int file) {
  return ::ftruncate(file, kBytes) == 0 && ::fallocate(file, 0, 0, kBytes) == 0 &&
         ::fchmod(file, S_IRUSR) == 0;
}

/// A kernel before 5.1 does not know the seal by which this mapping is the last that can write.
bool seal(int file) {
  const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  return ::fcntl(file, F_ADD_SEALS, all | F_SEAL_FUTURE_WRITE) == 0 ||
         ::fcntl(file, F_ADD_SEALS, all) == 0;
}

constexpr const char* kVariable = "DIWARP_COUNTERS";
std::atomic<bool> wrong_word_told = false;

/// What the environment asks for. A word that it does not know is told of once.
bool wants_private() {
  const char* const found = std::getenv(kVariable);
  const std::string_view wanted = found == nullptr ? "" : found;
  if (wanted == "private") return true;
  if (!wanted.empty() && wanted != "shared" && !wrong_word_told.exchange(true))
    log::warn(std::string(kVariable) + "=" + std::string(wanted.substr(0, 80)) +
              " is ignored, and counters are shared: give private, or shared");
  return false;
}

}  // namespace

class SharedCounters::File {
 public:
  /// Null where the system refuses, with errno set.
  static std::unique_ptr<File> open();
  File() = default;
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void* memory() { return memory_; }

 private:
  bool map();
  void announce();

  UniqueFd descriptor_;
  std::optional<ClosedInChild> closed_in_child_;
  void* memory_ = nullptr;
  Place* place_ = nullptr;
};

std::unique_ptr<SharedCounters::File> SharedCounters::File::open() {
  if (!may_have_files()) {
    errno = EFBIG;
    return nullptr;
  }
  auto file = std::make_unique<File>();
  file->descriptor_.reset(create_file());
  if (!file->descriptor_) return nullptr;
  file->closed_in_child_.emplace(file->descriptor_.get());
  if (!set_size(file->descriptor_.get()) || !file->map()) return nullptr;
  file->announce();
  return file;
}

/// The mapping is there before the seal that lets no other one write.
bool SharedCounters::File::map() {
  const int file = descriptor_.get();
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = memory;
  return seal(file) && ::madvise(memory, kBytes, MADV_DONTFORK) == 0;
}

/// To leave_parent().
void SharedCounters::File::announce() {
  place_ = &take_place();
  place_->memory.store(memory_);
}

SharedCounters::File::~File() {
  // First: a child must not put zeros where another thread maps something next.
  if (place_ != nullptr) place_->memory.store(nullptr);
  if (memory_ != nullptr) ::munmap(memory_, kBytes);
  if (place_ != nullptr) place_->taken.store(false);
}

SharedCounters::SharedCounters(const std::string& device) {
  if (!wants_private()) {
    file_ = File::open();
    if (!file_)
      log::info(
          "diwarp-stat will not see the counters of the device on " + device +
          ", as the system gives no memory for that: " + std::generic_category().message(errno));
  }
  if (!file_) private_ = std::make_unique<Counters>();
  counters_ = file_ ? write_block(file_->memory(), device) : private_.get();
}

SharedCounters::~SharedCounters() = default;

}  // namespace diwarp
