// SPDX-License-Identifier: Apache-2.0
#include "base/shared_counters.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/counters_block.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "support/catch.h"
#include "support/child.h"

using namespace diwarp;
using counters_block::Entry;
using counters_block::Header;

namespace {

/// The descriptors of this process that are counters.
std::vector<int> files_of_counters() {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry, error).string();
    if (target.starts_with("/memfd:diwarp-counters"))
      found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

UniqueFd open_again(int file, int flags) {
  return UniqueFd(::open(("/proc/self/fd/" + std::to_string(file)).c_str(), flags));
}

/// A value as a reader finds it, by its name.
std::optional<uint64_t> read_value(int file, const std::string& name) {
  Header header{};
  if (::pread(file, &header, sizeof header, 0) != sizeof header) return std::nullopt;
  for (uint32_t i = 0; i < header.entries; ++i) {
    Entry entry{};
    const auto place = static_cast<off_t>(header.table + i * sizeof entry);
    if (::pread(file, &entry, sizeof entry, place) != sizeof entry) return std::nullopt;
    uint64_t value = 0;
    if (name != entry.name.data()) continue;
    if (::pread(file, &value, sizeof value, entry.offset) != sizeof value) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

/// While one lives, the environment says so.
class Environment {
 public:
  explicit Environment(const char* value) { ::setenv("DIWARP_COUNTERS", value, 1); }
  ~Environment() { ::unsetenv("DIWARP_COUNTERS"); }
};

constexpr int kRight = 0;
constexpr int kWrong = 1;

int right_if(bool right) { return right ? kRight : kWrong; }

}  // namespace

TEST_CASE("shared counters are read by their names in the file that the process has open") {
  SharedCounters counters("127.0.0.1");
  REQUIRE(counters.shared());
  REQUIRE(files_of_counters().size() == 1);
  const int file = files_of_counters().front();
  counters.get().add(Counter::drop_crc, 3);
  counters.get().add_shared(Counter::accept_refused, 4);
  counters.get().add(Meter::open_records, 2);
  counters.get().subtract(Meter::open_records);
  counters.get().add_shared(Meter::completions_polled, 5);
  CHECK(read_value(file, "drop_crc") == 3);
  CHECK(read_value(file, "accept_refused") == 4);
  CHECK(read_value(file, "open_records") == 1);
  CHECK(read_value(file, "completions_polled") == 5);
  CHECK(read_value(file, "rx_datagrams") == 0);
  for (size_t i = 0; i < Counters::count(); ++i)
    CHECK(read_value(file, std::string(Counters::name(static_cast<Counter>(i)))));
  for (size_t i = 0; i < Counters::meter_count(); ++i)
    CHECK(read_value(file, std::string(Counters::name(static_cast<Meter>(i)))));
}

TEST_CASE("the block of shared counters tells whose it is") {
  SharedCounters first("127.0.0.1"), second("::1");
  std::vector<Header> headers;
  for (const int file : files_of_counters()) {
    Header header{};
    REQUIRE(::pread(file, &header, sizeof header, 0) == sizeof header);
    CHECK(header.magic == counters_block::kMagic);
    CHECK(header.layout == counters_block::kLayout);
    CHECK(header.process == static_cast<uint32_t>(::getpid()));
    CHECK(header.opened != 0);
    headers.push_back(header);
  }
  REQUIRE(headers.size() == 2);
  CHECK(headers[0].device != headers[1].device);
  CHECK(std::string(headers[0].address.data()) == "127.0.0.1");
  CHECK(std::string(headers[1].address.data()) == "::1");
}

TEST_CASE("nothing is left of shared counters when they are gone") {
  { SharedCounters counters("127.0.0.1"); }
  CHECK(files_of_counters().empty());
}

TEST_CASE("nobody can cut, lengthen, write or execute the file of shared counters") {
  SharedCounters counters("127.0.0.1");
  REQUIRE(counters.shared());
  const int file = files_of_counters().front();
  struct stat status {};
  REQUIRE(::fstat(file, &status) == 0);
  CHECK((status.st_mode & 07777) == 0400);
  CHECK(status.st_blocks * 512 >= status.st_size);     // no hole: the memory is there
  const UniqueFd writable = open_again(file, O_RDWR);  // root may open any file
  for (const int one : {file, writable.get()}) {
    if (one < 0) continue;
    CHECK(::ftruncate(one, 0) != 0);
    CHECK(::ftruncate(one, status.st_size * 2) != 0);
    CHECK(::fallocate(one, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, status.st_size) != 0);
    CHECK(::pwrite(one, "x", 1, 0) != 1);
    CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, one, 0) == MAP_FAILED);
    CHECK(::fcntl(one, F_ADD_SEALS, F_SEAL_WRITE) != 0);
  }
  counters.get().add(Counter::drop_crc);
  CHECK(read_value(file, "drop_crc") == 1);
}

TEST_CASE("a program that the process becomes has no shared counters") {
  SharedCounters counters("127.0.0.1");
  REQUIRE(counters.shared());
  CHECK((::fcntl(files_of_counters().front(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a forked child does not count into its parent's shared counters") {
  SharedCounters counters("127.0.0.1");
  REQUIRE(counters.shared());
  const int file = files_of_counters().front();
  counters.get().add(Counter::drop_crc, 7);
  const int result = test::in_child([&] {
    if (!files_of_counters().empty()) return 2;
    // As code would that was under way when a signal handler forked.
    counters.get().add(Counter::drop_crc, 100);
    counters.get().add_shared(Meter::queue_pairs, 100);
    return right_if(counters.get().get(Counter::drop_crc) == 100);
  });
  CHECK(result == kRight);
  CHECK(counters.get().get(Counter::drop_crc) == 7);
  CHECK(read_value(file, "drop_crc") == 7);
  CHECK(read_value(file, "queue_pairs") == 0);
}

TEST_CASE("a child that no handler of forks knows has no way to its parent's shared counters") {
  SharedCounters counters("127.0.0.1");
  REQUIRE(counters.shared());
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr));
  if (child == 0) {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    ::signal(SIGSEGV, SIG_DFL);
    ::alarm(60);
    counters.get().add(Counter::drop_crc, 100);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(counters.get().get(Counter::drop_crc) == 0);
}

TEST_CASE("a forked child has shared counters of its own, and so has its child") {
  SharedCounters counters("127.0.0.1");
  REQUIRE(counters.shared());
  const int result = test::in_child([] {
    SharedCounters own("127.0.0.1");
    if (!own.shared() || files_of_counters().size() != 1) return 2;
    const int file = files_of_counters().front();
    own.get().add(Counter::drop_crc, 5);
    const int below = test::in_child([&] {
      // The parent's parent's descriptor had this number, which is another file's now.
      return right_if(files_of_counters().empty());
    });
    return right_if(below == kRight && read_value(file, "drop_crc") == 5);
  });
  CHECK(result == kRight);
}

TEST_CASE("in a child's child no descriptor is closed that it opened itself") {
  SharedCounters counters("127.0.0.1");
  REQUIRE(counters.shared());
  const int file = files_of_counters().front();
  const int result = test::in_child([&] {
    const int reused = ::dup2(STDERR_FILENO, file);  // the number is free in the child
    return right_if(reused == file && test::in_child([&] {
                                        return right_if(::fcntl(file, F_GETFD) >= 0);
                                      }) == kRight);
  });
  CHECK(result == kRight);
}

TEST_CASE("DIWARP_COUNTERS=private keeps counters from others") {
  const Environment environment("private");
  SharedCounters counters("127.0.0.1");
  CHECK_FALSE(counters.shared());
  CHECK(files_of_counters().empty());
  counters.get().add(Counter::drop_crc);
  CHECK(counters.get().get(Counter::drop_crc) == 1);
}

TEST_CASE("another word in DIWARP_COUNTERS leaves counters shared") {
  const Environment environment("shared");
  CHECK(SharedCounters("127.0.0.1").shared());
}

TEST_CASE("counters are private where the system gives no memory to share") {
  // A process that may not have files as long is not ended by SIGXFSZ.
  CHECK(test::in_child([] {
          const rlimit limit{.rlim_cur = 4096, .rlim_max = 4096};
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
          SharedCounters counters("127.0.0.1");
          counters.get().add(Counter::drop_crc);
          return right_if(!counters.shared() && counters.get().get(Counter::drop_crc) == 1);
        }) == kRight);
  CHECK(test::in_child([] {
          // UndefinedBehaviorSanitizer looks at a type once, and needs descriptors for that. The
          // log's types are looked at when it is made.
          if (std::generic_category().message(EMFILE).empty()) return 3;
          log::debug("not shown");
          const rlimit limit{.rlim_cur = 0, .rlim_max = 0};
          if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
          SharedCounters counters("127.0.0.1");
          counters.get().add(Counter::drop_crc);
          return right_if(!counters.shared() && counters.get().get(Counter::drop_crc) == 1);
        }) == kRight);
}
