// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_transmission_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

#include "diwarp/error.h"
#include "rnic/datagram/rd/rd_peer.h"

namespace diwarp::rnic {
namespace {

constexpr const char* kColumns = "seconds,event,number,in_flight,early,window,rate,round_trip_us\n";

const char* name_of(dgram::TransmissionCause cause) {
  switch (cause) {
    case dgram::TransmissionCause::first:
      return "first";
    case dgram::TransmissionCause::lost:
      return "lost";
    case dgram::TransmissionCause::probe:
      return "probe";
    case dgram::TransmissionCause::recalled:
      return "recalled";
  }
  return "";
}

}  // namespace

std::unique_ptr<RdTransmissionLog> RdTransmissionLog::open(const std::string& path) {
  if (path.empty()) return nullptr;
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file)
    throw Error(std::error_code(errno, std::generic_category()),
                "The log of transmissions cannot be written to " + path);
  return std::make_unique<RdTransmissionLog>(std::move(file));
}

RdTransmissionLog::RdTransmissionLog(UniqueFd file) : file_(std::move(file)), buffer_(kColumns) {
  buffer_.reserve(kBuffer);
}

RdTransmissionLog::~RdTransmissionLog() {
  if (!guard_.in_child()) flush();
}

bool RdTransmissionLog::follows(const RdPeer& peer) {
  if (!peer_) peer_ = peer.address();
  return file_ && *peer_ == peer.address();
}

void RdTransmissionLog::sent(const RdPeer& peer, uint64_t number, dgram::TransmissionCause cause,
                             Time now) {
  if (follows(peer)) add(peer, name_of(cause), number, now);
}

void RdTransmissionLog::acknowledged(const RdPeer& peer, Time now) {
  if (follows(peer))
    add(peer, "acknowledged", peer.sender().window().first_unacknowledged() - 1, now);
}

void RdTransmissionLog::add(const RdPeer& peer, const char* event, uint64_t number, Time now) {
  using Seconds = std::chrono::duration<double>;
  using Microseconds = std::chrono::duration<double, std::micro>;
  if (!begin_) begin_ = now;
  const dgram::Sender& sender = peer.sender();
  std::array<char, 160> line;
  const int length = std::snprintf(
      line.data(), line.size(), "%.6f,%s,%llu,%u,%u,%u,%.0f,%.1f\n", Seconds(now - *begin_).count(),
      event, static_cast<unsigned long long>(number), sender.scoreboard().in_flight(),
      sender.scoreboard().early(), sender.congestion().window(),
      static_cast<double>(sender.congestion().pacing_rate()),
      Microseconds(sender.round_trip().smoothed()).count());
  if (buffer_.size() + static_cast<size_t>(length) > kBuffer) flush();
  buffer_.append(line.data(), static_cast<size_t>(length));
}

/// After an error, or where the file is full, nothing more is written.
void RdTransmissionLog::flush() {
  size_t done = 0;
  if (written_ + buffer_.size() > kMaxBytes) file_.reset();
  while (file_ && done != buffer_.size()) {
    const ssize_t count = ::write(file_.get(), buffer_.data() + done, buffer_.size() - done);
    if (count >= 0)
      done += static_cast<size_t>(count);
    else if (errno != EINTR)
      file_.reset();
  }
  written_ += done;
  buffer_.clear();
}

}  // namespace diwarp::rnic
