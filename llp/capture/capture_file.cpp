// SPDX-License-Identifier: Apache-2.0
#include "llp/capture/capture_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/fork_guard.h"
#include "base/log.h"
#include "base/signals_blocked.h"
#include "diwarp/error.h"
#include "diwarp/version.h"

namespace diwarp::llp {
namespace {

[[noreturn]] void refuse(const std::string& path, int error) {
  throw Error(std::error_code(error, std::system_category()),
              "No packets can be captured to " + path);
}

std::string expanded(std::string path) {
  const std::string process = std::to_string(::getpid());
  for (size_t at = 0; (at = path.find("%p", at)) != std::string::npos; at += process.size())
    path.replace(at, 2, process);
  return path;
}

[[noreturn]] void refuse_kind(const std::string& path) {
  throw Error(Errc::invalid_argument,
              "Packets are captured to a regular file, which " + path + " is not");
}

/// What is no capture was meant to be something else.
bool may_be_overwritten(int file) {
  std::array<std::byte, 4> begin{};
  const ssize_t size = ::pread(file, begin.data(), begin.size(), 0);
  return size == 0 ||
         is_pcapng(ConstBytes(begin).first(static_cast<size_t>(std::max<ssize_t>(size, 0))));
}

/// The file is this user's, nobody else may read it, and no other process writes to it.
void take_over(int file, const std::string& path) {
  struct stat found {};
  if (::fstat(file, &found) != 0) refuse(path, errno);
  if (!S_ISREG(found.st_mode)) refuse_kind(path);
  if (found.st_uid != ::geteuid())
    throw Error(Errc::invalid_argument,
                "The file " + path + " belongs to another user; choose another name");
  if (::flock(file, LOCK_EX | LOCK_NB) != 0)
    throw Error(std::make_error_code(std::errc::device_or_resource_busy),
                "Another process captures packets to " + path +
                    "; give each its own file, with %p in the name for the number of the process");
  if (::fchmod(file, S_IRUSR | S_IWUSR) != 0) refuse(path, errno);
}

/// At the end of what this process wrote to it before, or at the begin of an empty file.
UniqueFd open_file(const std::string& path, bool goes_on) {
  // O_NONBLOCK: opening a FIFO would wait for its reader.
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_APPEND;
  UniqueFd file(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (!file && errno == ENXIO) refuse_kind(path);  // a FIFO that nobody reads
  if (!file) refuse(path, errno);
  take_over(file.get(), path);
  if (!may_be_overwritten(file.get()))
    throw Error(Errc::invalid_argument,
                "The file " + path + " is no capture; remove it, or choose another name");
  if (!goes_on && ::ftruncate(file.get(), 0) != 0) refuse(path, errno);
  return file;
}

uint64_t length_of(int file) {
  struct stat found {};
  return ::fstat(file, &found) == 0 ? static_cast<uint64_t>(found.st_size) : 0;
}

/// The files that this process has open, and the names of all that it had.
struct Known {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<CaptureFile>> open;
  std::set<std::string> written;
  ForkGuard guard;
};

/// A forked child begins with none.
Known& known() {
  static std::mutex mutex;
  static Known* only = nullptr;  // never destroyed: devices may end after static objects
  const std::lock_guard lock(mutex);
  if (only == nullptr || only->guard.in_child()) only = new Known;
  return *only;
}

}  // namespace

std::shared_ptr<CaptureFile> CaptureFile::open(const std::string& path, uint64_t limit) {
  if (limit < kLeastLimit || limit > static_cast<uint64_t>(INT64_MAX))
    throw Error(Errc::invalid_argument, "A capture may hold " + std::to_string(kLeastLimit) +
                                            " bytes at least, and 2^63 - 1 at most");
  const std::string name = expanded(path);
  Known& files = known();
  const std::lock_guard lock(files.mutex);
  if (auto shared = files.open[name].lock()) return shared;
  auto opened =
      std::make_shared<CaptureFile>(name, open_file(name, files.written.contains(name)), limit);
  files.written.insert(name);
  files.open[name] = opened;
  return opened;
}

CaptureFile::CaptureFile(std::string path, UniqueFd file, uint64_t limit)
    : path_(std::move(path)),
      file_(std::move(file)),
      closed_in_child_(file_.get()),
      written_(length_of(file_.get())) {
  room_ = limit - std::min(limit, written_);
  append(kOtherBlock, 0,
         [](Bytes target) { return section_header(target, "diwarp " + to_string(version())); });
  const SignalsBlocked blocked;
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "diwarp-pcap");
    write_all();
  });
}

CaptureFile::~CaptureFile() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  filled_.notify_one();
  thread_.join();
}

/// Calls `compose` with room for `most` bytes, of which it returns how many it filled. False where
/// there is no room for them and `spare` more. With the mutex, or before the thread.
template <class Compose>
bool CaptureFile::append(size_t most, size_t spare, Compose&& compose) {
  if (broken_ || most + spare > std::min<uint64_t>(room_, kBuffer - front_.size)) return false;
  const size_t size = compose(Bytes(front_.bytes.get() + front_.size, most));
  front_.size += size;
  room_ -= size;
  filled_.notify_one();
  return true;
}

uint32_t CaptureFile::add_interface(const std::string& name, Counters& counters) {
  const std::lock_guard lock(mutex_);
  interfaces_.push_back({.counters = &counters});
  ++live_;
  if (!append(kOtherBlock, 0, [&](Bytes target) { return interface_description(target, name); }))
    room_ = 0;  // its packets would not be understood
  return static_cast<uint32_t>(interfaces_.size() - 1);
}

void CaptureFile::end_interface(uint32_t interface) {
  const std::lock_guard lock(mutex_);
  Interface& ended = interfaces_[interface];
  append(kOtherBlock, 0, [&](Bytes target) {
    return interface_statistics(target, interface, std::chrono::system_clock::now(), ended.taken,
                                ended.dropped);
  });
  ended.counters = nullptr;
  --live_;
}

bool CaptureFile::add(uint32_t interface, WallTime at, Direction direction, const Packet& packet) {
  const size_t size = packet.size();
  const std::lock_guard lock(mutex_);
  Interface& its = interfaces_[interface];
  const size_t statistics = live_ * kOtherBlock;  // they are to have room at the end
  const bool taken = append(size + kPacketBlockOverhead, statistics, [&](Bytes target) {
    return packet_block(target, interface, at, direction, size,
                        [&](Bytes bytes) { packet.compose(bytes); });
  });
  if (!taken) {
    its.drop(1);
    return false;
  }
  ++its.taken;
  ++its.in_front;
  its.counters->add_shared(Counter::pcap_packets);
  return true;
}

void CaptureFile::Interface::drop(uint64_t packets) {
  dropped += packets;
  if (counters != nullptr) counters->add_shared(Counter::pcap_dropped, packets);
}

void CaptureFile::write_all() {
  std::unique_lock lock(mutex_);
  while (front_.size != 0 || !ends_) {
    filled_.wait(lock, [this] { return front_.size != 0 || ends_; });
    std::swap(front_, back_);
    for (Interface& its : interfaces_) its.in_back = std::exchange(its.in_front, 0);
    lock.unlock();
    if (!broken_) write({back_.bytes.get(), back_.size});
    lock.lock();
    back_.size = 0;
  }
}

void CaptureFile::write(ConstBytes bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(file_.get(), bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return give_up(written < 0 ? errno : EIO, bytes.first(done));
    done += static_cast<size_t>(written);
  }
  written_ += done;
}

/// `taken`: what the file took of a buffer. It ends with the last whole block of that.
void CaptureFile::give_up(int error, ConstBytes taken) {
  size_t whole = 0;
  while (const size_t block = whole_block(taken.subspan(whole))) whole += block;
  written_ += whole;
  static_cast<void>(::ftruncate(file_.get(), static_cast<off_t>(written_)));
  log::warn("No more packets are captured to " + path_ + ": " +
            std::system_category().message(error));
  count_lost(taken.first(whole));
}

/// All packets in the buffers but those of these blocks are lost, and so are all that come.
void CaptureFile::count_lost(ConstBytes taken) {
  const std::lock_guard lock(mutex_);
  broken_ = true;
  while (const size_t block = whole_block(taken)) {
    if (const auto interface = interface_of_packet(taken)) --interfaces_[*interface].in_back;
    taken = taken.subspan(block);
  }
  for (Interface& its : interfaces_) {
    const uint64_t lost = its.in_front + its.in_back;
    its.taken -= lost;
    its.drop(lost);
  }
}

}  // namespace diwarp::llp
