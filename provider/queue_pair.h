// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "diwarp/attributes.h"
#include "diwarp/connect_options.h"
#include "diwarp/datagram_options.h"
#include "diwarp/types.h"

namespace diwarp::provider {

/// What only queue pairs of type rc do, as the public class QueuePair has it.
class RcOperations {
 public:
  virtual ~RcOperations() = default;

  virtual void modify_to_rtr(const StreamAttributes& stream) = 0;
  virtual void await_peer(const NamedPeer& peer) = 0;
  virtual void limit_peer_wait(Duration timeout) = 0;
  virtual std::vector<std::byte> connect(const Address& peer, const ConnectOptions& options) = 0;
  virtual std::vector<std::byte> connect_on(int descriptor, const ConnectOptions& options) = 0;
  virtual std::vector<std::byte> accept_on(int descriptor, const AcceptOptions& options,
                                           Duration timeout) = 0;
  virtual void disconnect(const DisconnectOptions& options) = 0;
  virtual bool wait_disconnected(Duration timeout) = 0;
};

/// The same of types ud and rd.
class DatagramOperations {
 public:
  virtual ~DatagramOperations() = default;

  /// Throws Error(invalid_destination) where nothing can be sent there. The port does not matter.
  virtual uint32_t max_datagram_payload(const Address& destination) = 0;
  virtual void set_q_key(uint32_t q_key) = 0;
  virtual void set_max_rate(uint64_t bytes_per_second) = 0;
  virtual void join(const Address& group, std::string_view interface) = 0;
  virtual void leave(const Address& group, std::string_view interface) = 0;
  virtual void set_sources(std::span<const SourceFilter> sources) = 0;
  virtual std::optional<DatagramError> poll_error() = 0;
  virtual std::vector<OpenRecord> open_records() = 0;
  virtual std::vector<ReliablePeer> peers() = 0;
};

/// A queue pair of any type. Any thread.
class QueuePair {
 public:
  virtual ~QueuePair() = default;

  /// In order, up to the first that fails; `posted` says how many.
  virtual std::error_code post_sends(std::span<const SendWorkRequest> requests,
                                     size_t& posted) noexcept = 0;
  /// All of them, or none.
  virtual std::error_code post_all_sends(std::span<const SendWorkRequest> requests) noexcept = 0;
  virtual std::error_code post_recvs(std::span<const ReceiveWorkRequest> requests,
                                     size_t& posted) noexcept = 0;
  virtual void modify(QpState to) = 0;
  virtual void set_remote_access(Access accesses) = 0;
  virtual QpState state() const = 0;
  virtual uint32_t number() const = 0;
  /// The address that query() tells, without its system calls: programs call this between messages.
  virtual Address local_address() = 0;
  virtual QueuePairAttributes query() = 0;

  /// Null where it is of another type.
  virtual RcOperations* rc() { return nullptr; }
  virtual DatagramOperations* datagram() { return nullptr; }
};

}  // namespace diwarp::provider
