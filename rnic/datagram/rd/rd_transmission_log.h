// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fork_guard.h"
#include "base/unique_fd.h"
#include "dgram/sender.h"
#include "diwarp/address.h"

namespace diwarp::rnic {

class RdPeer;

/// Writes each transmission to the first peer of an RD queue pair to a file, and each
/// acknowledgement of it, a line each (docs/reliable.md has the columns). It is for finding out why
/// a connection is slow, and waits for the disk. RdQueuePair owns it. With the baton.
class RdTransmissionLog {
 public:
  /// The file gets no longer, in bytes: what happens after that is left out.
  static constexpr size_t kMaxBytes = size_t{256} << 20;

  /// Null where `path` is empty. An earlier file is overwritten. Throws Error with the system's
  /// errno where the file cannot be written.
  static std::unique_ptr<RdTransmissionLog> open(const std::string& path);

  RdTransmissionLog(UniqueFd file);
  ~RdTransmissionLog();
  RdTransmissionLog(const RdTransmissionLog&) = delete;
  RdTransmissionLog& operator=(const RdTransmissionLog&) = delete;

  /// This number is being sent, for that reason.
  void sent(const RdPeer& peer, uint64_t number, dgram::TransmissionCause cause, Time now);
  /// Something that was sent is acknowledged.
  void acknowledged(const RdPeer& peer, Time now);

 private:
  static constexpr size_t kBuffer = size_t{64} << 10;

  bool follows(const RdPeer& peer);
  void add(const RdPeer& peer, const char* event, uint64_t number, Time now);
  void flush();

  UniqueFd file_;
  std::string buffer_;
  size_t written_ = 0;
  std::optional<Address> peer_;
  std::optional<Time> begin_;
  ForkGuard guard_;
};

}  // namespace diwarp::rnic
