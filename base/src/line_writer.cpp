// SPDX-License-Identifier: Apache-2.0
#include "line_writer.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace diwarp::log {
namespace {

/// While this lives, a write of this thread raises neither SIGPIPE (nobody reads) nor SIGXFSZ (the
/// file is as long as it may be). Both are sent to the thread that writes.
class WriteSignalsBlocked {
 public:
  WriteSignalsBlocked() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGPIPE);
    ::sigaddset(&set_, SIGXFSZ);
    ::sigpending(&pending_);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~WriteSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WriteSignalsBlocked(const WriteSignalsBlocked&) = delete;
  WriteSignalsBlocked& operator=(const WriteSignalsBlocked&) = delete;

  /// After a write that failed: its signal, but not one that had been there before.
  void take_signal(int number) const {
    if (::sigismember(&pending_, number) == 1) return;
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, number);
    const timespec at_once{};
    ::sigtimedwait(&one, nullptr, &at_once);
  }

 private:
  sigset_t set_;
  sigset_t pending_;
  sigset_t before_;
};

/// The flag that a socket is told not to wait by is no pipe's, terminal's or file's. Setting
/// O_NONBLOCK would change the descriptor for all that share it. A pipe that has room at all takes
/// PIPE_BUF bytes at once.
bool has_room(int descriptor) {
  pollfd wanted{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&wanted, 1, 0) == 1 && (wanted.revents & (POLLOUT | POLLERR)) != 0;
}

ssize_t write_to_file(int descriptor, std::string_view text) {
  if (!has_room(descriptor)) return -1;
  const WriteSignalsBlocked blocked;
  const ssize_t written = ::write(descriptor, text.data(), text.size());
  if (written < 0 && errno == EPIPE) blocked.take_signal(SIGPIPE);
  if (written < 0 && errno == EFBIG) blocked.take_signal(SIGXFSZ);
  return written;
}

ssize_t write_some(int descriptor, std::string_view text) {
  const ssize_t sent = ::send(descriptor, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  return write_to_file(descriptor, text);
}

}  // namespace

bool LineWriter::write(int descriptor, std::string_view line) noexcept {
  if (cut_ && write_some(descriptor, "\n") != 1) return false;
  const ssize_t written = write_some(descriptor, line);
  const bool whole = written == static_cast<ssize_t>(line.size());
  cut_ = written > 0 && !whole;
  return whole;
}

}  // namespace diwarp::log
