// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "options.h"
#include "protocol.h"

/// The differences of the two peers: one end of an RC connection, over libibverbs and librdmacm or
/// over diwarp. Every call that waits has an end.
namespace interop {

using Duration = std::chrono::milliseconds;

/// Something is not as it must be: the test fails with this message.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The connection is no more; a test may want that.
struct ConnectionEnded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Rejected : std::runtime_error {
  explicit Rejected(std::vector<std::byte> data)
      : std::runtime_error("rejected"), private_data(std::move(data)) {}
  std::vector<std::byte> private_data;
};

struct Rights {
  bool write = false;
  bool read = false;
  bool invalidate = false;
};

/// A request of the send queue; `local` is part of local(). Each is signaled.
struct Work {
  Op op = Op::send;
  std::span<std::byte> local;
  uint32_t remote_key = 0;  ///< also what is invalidated
  uint64_t remote_address = 0;
};

struct Completion {
  uint64_t id = 0;  ///< of a receive: the slot
  bool success = false;
  std::string status;
  uint32_t bytes = 0;
  bool invalidated = false;
  uint32_t invalidated_key = 0;
};

/// How a connection ended, as far as this side knows.
struct Ending {
  bool ended = false;
  std::string event;      ///< asynchronous event, or empty
  std::string terminate;  ///< "received 1/1/0", "sent 0/1/2", or empty where it is not told
};

class Endpoint {
 public:
  explicit Endpoint(const Options& options)
      : slot_size_(options.slot_size),
        slots_(options.receives),
        memory_(slot_size_ * (slots_ + 3)) {}
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  virtual ~Endpoint() = default;

  // All in one locally registered region; the receives of all slots are posted before the
  // connection is made.
  std::span<std::byte> slot(uint64_t i) { return local().subspan(i * slot_size_, slot_size_); }
  std::span<std::byte> outgoing() { return slot(slots_); }
  std::span<std::byte> sink() { return slot(slots_ + 1); }
  /// The protocol's own messages. siw sends from the memory itself and completes a Send while TCP
  /// may still need it: sent bytes must stay until the peer has answered.
  std::span<std::byte> control() { return slot(slots_ + 2); }
  uint32_t slots() const { return slots_; }

  /// Lets the peer at `memory`, until withdraw(); one at a time. Returns the key.
  virtual uint32_t expose(std::span<std::byte> memory, Rights rights) = 0;
  virtual void withdraw() = 0;

  virtual void post_receive(uint64_t slot) = 0;
  virtual void post(const Work& work) = 0;
  /// Nothing after `limit`.
  virtual std::optional<Completion> next_sent(Duration limit) = 0;
  virtual std::optional<Completion> next_received(Duration limit) = 0;

  /// Whether a receive tells that it was solicited (by an event) and what it invalidated. siw's
  /// driver gives no solicited events, and its library does not hand the invalidated STag on.
  virtual bool tells_all() const = 0;
  /// Asks for an event at the next solicited receive; then whether it came.
  virtual void arm_solicited() = 0;
  virtual bool solicited_event(Duration limit) = 0;

  virtual void disconnect() = 0;
  virtual Ending wait_ended(Duration limit) = 0;

  virtual std::vector<std::byte> peer_private_data() const = 0;
  /// "revision 2, crc, ..." where it can be told.
  virtual std::string negotiated() const { return ""; }

 protected:
  std::span<std::byte> local() { return memory_; }

 private:
  size_t slot_size_;
  uint32_t slots_;
  std::vector<std::byte> memory_;
};

class Acceptor {
 public:
  virtual ~Acceptor() = default;
  /// The next connection, accepted; nothing after `limit`. `rejects` first requests are rejected.
  virtual std::unique_ptr<Endpoint> accept(Duration limit) = 0;
};

// The peer's own.
std::unique_ptr<Endpoint> dial(const Options& options);
std::unique_ptr<Acceptor> listen(const Options& options);

}  // namespace interop
