// SPDX-License-Identifier: Apache-2.0
#include "stat/sample.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "common/interrupt.h"

namespace diwarp::tools {
namespace {

/// A block that is being made, or goes, is not whole for so long.
constexpr auto kSecondLook = std::chrono::milliseconds(20);

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

Folder open_folder(const std::string& path) { return {::opendir(path.c_str()), ::closedir}; }

template <class Visit>
void for_each_name(DIR* folder, Visit&& visit) {
  while (const dirent* const entry = ::readdir(folder))
    if (entry->d_name[0] != '.') visit(entry->d_name);
}

std::string folder_of(pid_t process) { return "/proc/" + std::to_string(process); }

std::optional<pid_t> number_of(std::string_view name) {
  pid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size() || number <= 0) return std::nullopt;
  return number;
}

/// The user whose rights the process has; no value where there is no such process.
std::optional<uid_t> owner_of(pid_t process) {
  struct stat status {};
  if (::stat(folder_of(process).c_str(), &status) != 0) return std::nullopt;
  return status.st_uid;
}

bool runs(pid_t process) { return owner_of(process).has_value(); }

std::string program_of(pid_t process) {
  std::string name;
  std::getline(std::ifstream(folder_of(process) + "/comm"), name);
  return name.empty() ? "?" : printable(name);
}

/// The numbers of a process in its namespaces, ours first and its own last.
std::vector<pid_t> numbers_of(pid_t process) {
  std::ifstream status(folder_of(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream words(line.substr(6));
    std::vector<pid_t> numbers;
    for (pid_t number = 0; words >> number;) numbers.push_back(number);
    if (!numbers.empty()) return numbers;
  }
  return {process};
}

/// Whether a link of /proc leads to a file with the name of counters.
bool leads_to_counters(int folder, const char* name) {
  const std::string wanted = std::string("/memfd:") + counters_block::kFileName;
  std::array<char, 64> target{};
  const ssize_t length = ::readlinkat(folder, name, target.data(), target.size());
  if (length <= 0) return false;
  const std::string_view found(target.data(), static_cast<size_t>(length));
  return found == wanted || found == wanted + " (deleted)";
}

/// Each value is read at once, as its process may be writing it.
std::vector<std::byte> copy_words(const void* memory, size_t bytes) {
  std::vector<std::byte> copy(bytes / sizeof(uint64_t) * sizeof(uint64_t));
  auto* const words = static_cast<uint64_t*>(const_cast<void*>(memory));
  for (size_t i = 0; i < copy.size() / sizeof(uint64_t); ++i) {
    const uint64_t word = std::atomic_ref<uint64_t>(words[i]).load(std::memory_order_relaxed);
    std::memcpy(copy.data() + i * sizeof word, &word, sizeof word);
  }
  return copy;
}

/// Files of counters of one process that are looked at, and reasons why not that are told of it.
constexpr size_t kMostFiles = 1024;
constexpr size_t kMostReasons = 8;

/// What is looked for in one process.
class ProcessSearch {
 public:
  ProcessSearch(pid_t process, bool asked_for, Sample& sample)
      : process_(process), asked_for_(asked_for), sample_(sample) {}

  /// Shows what is whole, and notes what is not.
  void look() {
    const Folder folder = open_folder(folder_of(process_) + "/fd");
    if (!folder) return explain_refusal(errno);
    for_each_name(folder.get(), [&](const char* name) {
      check_interrupted();
      if (!leads_to_counters(::dirfd(folder.get()), name)) return;
      if (files_.size() >= kMostFiles)
        return report("has more than " + std::to_string(kMostFiles) +
                      " files of counters; the others are not shown");
      try {
        take(::dirfd(folder.get()), name);
      } catch (const BadBlock&) {
        unsettled_.emplace_back(name);
      }
    });
  }

  bool settled() const { return unsettled_.empty(); }

  /// A while after look(), at what was not whole then.
  void look_again() {
    const Folder folder =
        settled() ? Folder(nullptr, ::closedir) : open_folder(folder_of(process_) + "/fd");
    if (!folder) return;
    for (const std::string& name : unsettled_) {
      check_interrupted();
      try {
        if (leads_to_counters(::dirfd(folder.get()), name.c_str()))
          take_again(::dirfd(folder.get()), name.c_str());
      } catch (const BadBlock& bad) {
        note("The counters of process " + std::to_string(process_) + " " + bad.what());
      }
    }
  }

  /// Tells what is not shown: each reason once.
  void tell() {
    if (asked_for_ && !shown_ && reasons_.empty())
      return sample_.problems.push_back(
          {.process = process_,
           .message = "Process " + std::to_string(process_) +
                      " has no diwarp device whose counters are shared.",
           .no_device = true});
    for (const auto& [sentence, count] : reasons_)
      add_problem(sentence + (count == 1 ? "" : " (" + std::to_string(count) + " files)"));
    if (unnamed_ != 0)
      add_problem("Process " + std::to_string(process_) + " holds " + std::to_string(unnamed_) +
                  " more that cannot be read, for other reasons");
  }

 private:
  void add_problem(const std::string& sentence) {
    sample_.problems.push_back({.process = process_, .message = sentence + "."});
  }

  void note(const std::string& sentence) {
    const auto found = std::ranges::find(reasons_, sentence, &Reason::first);
    if (found != reasons_.end())
      ++found->second;
    else if (reasons_.size() < kMostReasons)
      reasons_.emplace_back(sentence, 1);
    else
      ++unnamed_;
  }

  /// Of the process, not of one of its files.
  void report(const std::string& what) {
    const std::string sentence = "Process " + std::to_string(process_) + " " + what;
    if (std::ranges::find(reasons_, sentence, &Reason::first) == reasons_.end()) note(sentence);
  }

  void explain_refusal(int error) {
    if (error == ENOENT || error == ESRCH) {
      if (asked_for_) report("does not run");
    } else if (error == EACCES || error == EPERM) {
      if (asked_for_) report("is another user's, and only that user may read its counters");
    } else {
      report("cannot be looked at: " + std::generic_category().message(error));
    }
  }

  UniqueFd open(int folder, const char* name) {
    UniqueFd file(::openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file) explain_refusal(errno);
    return file;
  }

  void take(int folder, const char* name) {
    const UniqueFd file = open(folder, name);
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0) return;
    if (files_.insert(status.st_ino).second) add(file.get());  // else it has several descriptors
  }

  void take_again(int folder, const char* name) {
    const UniqueFd file = open(folder, name);
    if (file) add(file.get());
  }

  void add(int file) {
    DeviceSnapshot device = read_counters(file);
    const std::vector<pid_t> numbers = numbers_of(process_);
    if (device.process != static_cast<uint32_t>(numbers.back()))
      return explain_other(static_cast<pid_t>(device.process), numbers.size() == 1);
    shown_ = true;
    sample_.devices.push_back({process_, program_of(process_), std::move(device)});
  }

  /// A child that never ran a handler of pthread_atfork() has a descriptor of its parent's
  /// counters. `same_namespace`: the owner's number is one that means the same to this program.
  void explain_other(pid_t owner, bool same_namespace) {
    if (same_namespace && runs(owner)) return;
    note("Process " + std::to_string(process_) + " holds the counters of process " +
         std::to_string(owner) + (same_namespace ? ", which has ended" : " of its own namespace"));
  }

  using Reason = std::pair<std::string, size_t>;

  pid_t process_;
  bool asked_for_;
  Sample& sample_;
  bool shown_ = false;
  std::set<ino_t> files_;
  std::vector<std::string> unsettled_;  ///< descriptors
  std::vector<Reason> reasons_;         ///< sentences without their full stop
  size_t unnamed_ = 0;                  ///< files whose reason has no room among those
};

/// One pause is enough for all that is not whole.
void search(const std::vector<pid_t>& processes, bool asked_for, Sample& sample) {
  std::deque<ProcessSearch> searches;
  for (const pid_t process : processes) {
    check_interrupted();
    searches.emplace_back(process, asked_for, sample).look();
  }
  if (!std::ranges::all_of(searches, &ProcessSearch::settled))
    std::this_thread::sleep_for(kSecondLook);
  for (ProcessSearch& one : searches) {
    one.look_again();
    one.tell();
  }
}

void search_all(bool all_users, Sample& sample) {
  const Folder folder = open_folder("/proc");
  if (!folder) {
    sample.problems.push_back({0, "The processes cannot be listed: is /proc mounted?"});
    return;
  }
  const uid_t self = ::geteuid();
  std::vector<pid_t> processes;
  for_each_name(folder.get(), [&](const char* name) {
    const std::optional<pid_t> process = number_of(name);
    const std::optional<uid_t> owner = process ? owner_of(*process) : std::nullopt;
    if (!owner) return;
    if (*owner != self && !all_users)
      sample.others_left_out = true;
    else
      processes.push_back(*process);
  });
  search(processes, false, sample);
}

}  // namespace

/// Only a seal makes the mapping one that cannot be cut while it is read.
DeviceSnapshot read_counters(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) throw BadBlock("are no file");
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    throw BadBlock("are not sealed, so no diwarp has made them");
  if (status.st_size > counters_block::kByteLimit) throw BadBlock("are longer than any are");
  const auto bytes = static_cast<size_t>(status.st_size);
  if (bytes == 0) return parse_block({});
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) throw BadBlock("cannot be mapped");
  const std::vector<std::byte> copy = copy_words(memory, bytes);
  ::munmap(memory, bytes);
  return parse_block(copy);
}

std::vector<Problem> take_missing(Sample& sample, const Selection& selection) {
  const auto missing = [&](const Problem& problem) {
    return std::ranges::find(selection.processes, problem.process) != selection.processes.end() &&
           std::ranges::find(sample.devices, problem.process, &DeviceSample::process) ==
               sample.devices.end();
  };
  std::vector<Problem> taken;
  std::ranges::copy_if(sample.problems, std::back_inserter(taken), missing);
  std::erase_if(sample.problems, missing);
  return taken;
}

Sample take_sample(const Selection& selection) {
  Sample sample;
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  sample.now =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  if (selection.processes.empty())
    search_all(selection.all_users, sample);
  else
    search(selection.processes, true, sample);
  std::ranges::sort(sample.devices, [](const DeviceSample& a, const DeviceSample& b) {
    return std::pair(a.process, a.device.number) < std::pair(b.process, b.device.number);
  });
  return sample;
}

}  // namespace diwarp::tools
