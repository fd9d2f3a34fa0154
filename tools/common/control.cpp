// SPDX-License-Identifier: Apache-2.0
#include "common/control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/interrupt.h"
#include "common/socket.h"

namespace diwarp::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kMaxLine = size_t{64} << 10;

/// Waits for `events`; false at the deadline. Wakes every 100 ms at least, so that an interrupt
/// that came just before the system call is seen.
bool wait_for(int fd, short events, Time deadline) {
  while (true) {
    check_interrupted();
    pollfd entry{fd, events, 0};
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    const auto slice = std::clamp(left, milliseconds(0), milliseconds(100));
    if (::poll(&entry, 1, static_cast<int>(slice.count())) > 0) return true;
    if (steady_clock::now() >= deadline) return false;
  }
}

void set_non_blocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

[[noreturn]] void fail_connect(const Address& peer, int error) {
  if (error == ECONNREFUSED) {
    throw Failure("No one listens at " + peer.to_string() +
                  ": start this tool there first, with --server.");
  }
  throw Failure("Cannot connect to " + peer.to_string() + ": " + std::strerror(error) + ".");
}

int pending_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

/// Without control characters, and not endless: it came from the network and goes to a terminal.
std::string printable(std::string text) {
  text.resize(std::min(text.size(), size_t{400}));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return text;
}

}  // namespace

Control::Control(UniqueFd fd, Duration timeout)
    : fd_(std::move(fd)),
      timeout_(timeout),
      local_(local_address_of(fd_.get())),
      peer_(peer_address_of(fd_.get())) {
  set_non_blocking(fd_.get());
  send_at_once(fd_.get());
}

Control Control::connect(const Address& peer, Duration timeout) {
  UniqueFd fd = open_socket(peer, SOCK_STREAM | SOCK_NONBLOCK);
  sockaddr_storage storage{};
  const socklen_t length = peer.to_sockaddr(storage);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0) {
    if (errno != EINPROGRESS) fail_connect(peer, errno);
    if (!wait_for(fd.get(), POLLOUT, steady_clock::now() + timeout)) {
      throw Failure(peer.to_string() + " did not answer within " + to_text(timeout) + ".");
    }
    if (const int error = pending_error(fd.get()); error != 0) fail_connect(peer, error);
  }
  return {std::move(fd), timeout};
}

void Control::send(const Json& message) {
  const std::string line = message.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  const Time deadline = steady_clock::now() + timeout_;
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t done =
        ::send(fd_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done >= 0) {
      sent += static_cast<size_t>(done);
    } else if (errno == EAGAIN) {
      if (!wait_for(fd_.get(), POLLOUT, deadline)) fail_gone();
    } else if (errno != EINTR) {
      // The peer's last message before it went, if any, is a better reason.
      look();
      fail_gone();
    }
  }
}

void Control::fail_gone() const {
  if (!greeted_) fail_foreign();
  throw PeerGone("The peer at " + peer_.to_string() + " ended in the middle of the run.");
}

void Control::fail_foreign() const {
  throw PeerGone("The program at " + peer_.to_string() +
                 " does not speak this tool's protocol: both ends must be the same diwarp tool.");
}

void Control::take_line(const std::string& line) {
  const Json message = Json::parse(line, nullptr, false);
  if (!message.is_object() || !message.contains("type") || !message["type"].is_string()) {
    fail_foreign();
  }
  greeted_ = true;
  if (message["type"] == "error") {
    throw PeerStopped("The peer at " + peer_.to_string() +
                      " stopped: " + printable(text_in(message, "sentence")));
  }
  messages_.push_back(line);
}

void Control::take_lines() {
  for (size_t end = 0; (end = input_.find('\n')) != std::string::npos;) {
    const std::string line = input_.substr(0, end);
    input_.erase(0, end + 1);
    take_line(line);
  }
  if (input_.size() > kMaxLine) fail_foreign();
}

/// One read, after waiting for something to read; false at the deadline.
bool Control::read_some(Time deadline) {
  char buffer[4096];
  while (true) {
    const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
      input_.append(buffer, static_cast<size_t>(got));
      take_lines();
      return true;
    }
    if (got == 0) fail_gone();
    if (errno == EINTR) continue;
    if (errno != EAGAIN) fail_gone();
    if (!wait_for(fd_.get(), POLLIN, deadline)) return false;
  }
}

void Control::look() {
  char next = 0;
  while (messages_.empty()) {
    const ssize_t got = ::recv(fd_.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    read_some(steady_clock::now());
  }
}

Json Control::peek() const { return Json::parse(messages_.front()); }

void Control::fail_silence() const {
  if (!greeted_)
    throw Failure("The program at " + peer_.to_string() +
                  " took the connection, but nothing came from it within " + to_text(timeout_) +
                  ": look whether it is this tool, and not busy with another client.");
  throw Failure("The peer at " + peer_.to_string() + " did not answer within " + to_text(timeout_) +
                ".");
}

void Control::fail_word(const std::string& type) const {
  throw Failure("The peer at " + peer_.to_string() + " said \"" + printable(type) +
                "\" where something else was due: both ends must be of the same version.");
}

Json Control::next() { return next(timeout_); }

Json Control::next(Duration timeout) {
  const Time deadline = steady_clock::now() + timeout;
  while (messages_.empty()) {
    if (read_some(deadline)) continue;
    if (!greeted_ && !input_.empty()) fail_foreign();
    fail_silence();
  }
  Json message = Json::parse(messages_.front());
  messages_.pop_front();
  return message;
}

Json Control::expect(std::string_view type) { return expect(type, timeout_); }

Json Control::expect(std::string_view type, Duration timeout) {
  Json message = next(timeout);
  if (message["type"] != type) {
    throw Failure("The peer at " + peer_.to_string() + " said \"" +
                  printable(text_in(message, "type")) + "\" where \"" + std::string(type) +
                  "\" was due: both ends must be of the same version.");
  }
  return message;
}

void Control::check_fate(Time deadline) {
  while (read_some(deadline)) {
  }
}

void Control::send_error(std::string_view message) noexcept {
  try {
    send({{"type", "error"}, {"sentence", message}});
    ::shutdown(fd_.get(), SHUT_WR);
  } catch (...) {
    // The peer is gone as well: no one is left to tell.
  }
}

void Control::drain(Time deadline) noexcept {
  std::array<char, 4096> unread;
  pollfd entry{fd_.get(), POLLIN, 0};
  ssize_t got = 1;
  while (got > 0) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (::poll(&entry, 1, static_cast<int>(std::max(left, milliseconds(0)).count())) <= 0) return;
    got = ::recv(fd_.get(), unread.data(), unread.size(), MSG_DONTWAIT);
  }
}

void Peers::send(const Json& message) const {
  for (Control& control : all_) control.send(message);
}

void Peers::look_at_others() const {
  for (Control& control : all_.subspan(1)) control.look();
}

std::optional<size_t> Peers::index_of(const Control& control) const {
  for (size_t i = 0; i < all_.size(); ++i)
    if (&all_[i] == &control) return i;
  return std::nullopt;
}

bool Peers::pending() const { return std::ranges::all_of(all_, &Control::pending); }

ControlListener::ControlListener(const Address& address)
    : fd_(bound_socket(address, SOCK_STREAM)),
      local_address_of_listener_(local_address_of(fd_.get())) {
  if (::listen(fd_.get(), 8) != 0) {
    throw Failure("Cannot listen at " + address.to_string() + ": " + std::strerror(errno) + ".");
  }
  set_non_blocking(fd_.get());
}

std::optional<UniqueFd> ControlListener::try_accept(Time deadline) {
  while (true) {
    const int fd = ::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) return UniqueFd(fd);
    const Time slice = std::min(deadline, steady_clock::now() + std::chrono::seconds(1));
    if (!wait_for(fd_.get(), POLLIN, slice) && steady_clock::now() >= deadline) return std::nullopt;
  }
}

UniqueFd ControlListener::accept(std::optional<Duration> timeout) {
  std::optional<UniqueFd> peer = try_accept(timeout ? steady_clock::now() + *timeout : Time::max());
  if (peer) return std::move(*peer);
  throw Failure("No peer came to " + local_address_of_listener_.to_string() + " within " +
                to_text(*timeout) + ".");
}

std::string to_text(Duration duration) {
  const auto ms = std::chrono::duration_cast<milliseconds>(duration).count();
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + " s";
  return std::to_string(ms) + " ms";
}

namespace {

[[noreturn]] void fail_member(const char* name) {
  throw Failure(std::string("The peer sent no usable \"") + name +
                "\": both ends must be of the same version.");
}

const Json& member(const Json& message, const char* name) {
  const auto found = message.find(name);
  if (found == message.end()) fail_member(name);
  return *found;
}

}  // namespace

uint64_t number_in(const Json& message, const char* name, uint64_t low, uint64_t high) {
  const Json& value = member(message, name);
  if (!value.is_number_unsigned()) fail_member(name);
  const auto number = value.get<uint64_t>();
  if (number < low || number > high) fail_member(name);
  return number;
}

double positive_in(const Json& message, const char* name) {
  const Json& value = member(message, name);
  if (!value.is_number() || !(value.get<double>() >= 0)) fail_member(name);
  return value.get<double>();
}

bool flag_in(const Json& message, const char* name) {
  const Json& value = member(message, name);
  if (!value.is_boolean()) fail_member(name);
  return value.get<bool>();
}

std::string text_in(const Json& message, const char* name) {
  const Json& value = member(message, name);
  if (!value.is_string()) fail_member(name);
  return value.get<std::string>();
}

Address address_in(const Json& message, const char* name) {
  try {
    return Address::parse(text_in(message, name)).with_port(0);
  } catch (const std::system_error&) {
    fail_member(name);
  }
}

}  // namespace diwarp::tools
