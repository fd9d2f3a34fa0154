// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"
#include "diwarp/address.h"

namespace diwarp::llp {

class InputQueue;

/// The largest datagram of any link, in bytes; a link's own limit may be lower.
inline constexpr size_t kMaxDatagram = 65507;
/// The datagrams of the longest train that a system joins: 64 from the wire, 128 from this host.
inline constexpr size_t kMaxTrain = 128;

/// Where a datagram goes, and the local address that it leaves from, by the link's number of that;
/// 0: the system chooses, or the link has one address only.
struct Destination {
  Destination() = default;
  Destination(const Address& to, uint32_t from = 0) : address(to), local(from) {}
  friend bool operator==(const Destination&, const Destination&) = default;

  Address address;
  uint32_t local = 0;
};

/// One datagram to send: `pieces` are gathered in order and referenced only until send() returns.
struct OutgoingDatagram {
  Address to;
  std::span<const ConstBytes> pieces;
  uint32_t local = 0;  ///< as a Destination has it

  Destination destination() const { return {to, local}; }

  size_t size() const {
    size_t total = 0;
    for (ConstBytes piece : pieces) total += piece.size();
    return total;
  }
};

/// One datagram that came in; `bytes` lie in the batch that receive() filled, or in buffers added
/// to it, and live until the next receive() into that batch. Until then they are the receiver's, to
/// change as well: a datagram that several links receive, as members of a group do, is in bytes of
/// its own in each.
struct IncomingDatagram {
  Address from;
  Bytes bytes;
  bool group = false;  ///< came to a group's address: nothing is answered
  uint32_t via = 0;    ///< the receiver's number of that group; 0: none, or it is not known
  /// The link's number of the local address that it came to, on a link at all addresses of the
  /// host; else, or where it is not known: 0. Answers have to leave from there, for the sender
  /// knows its peer by that address.
  uint32_t local = 0;

  Destination sender() const { return {from, local}; }
};

/// The owner of buffers that a batch may use for a while. Any thread.
class BufferOwner {
 public:
  virtual ~BufferOwner() = default;
  virtual void return_buffers(std::span<const uint16_t> buffers) = 0;
};

/// Memory for one burst of received datagrams. It belongs to the engine, not to a link, so that an
/// idle link owns no buffers.
class ReceiveBatch {
 public:
  /// `slots` buffers of `slot_bytes` each; a slot holds one datagram, or a train of equal datagrams
  /// that the system coalesced. At most `max_datagrams` are handed out per receive().
  ReceiveBatch(size_t slots, size_t slot_bytes, size_t max_datagrams);
  ReceiveBatch(ReceiveBatch&&) = default;
  ReceiveBatch& operator=(ReceiveBatch&&) = default;
  ~ReceiveBatch() { clear(); }

  std::span<const IncomingDatagram> datagrams() const { return {datagrams_.data(), count_}; }
  size_t slots() const { return slots_; }
  size_t slot_bytes() const { return slot_bytes_; }

  // For links: fill a slot's bytes, then add() a view of each datagram in it.
  Bytes slot(size_t index) { return {memory_.get() + index * slot_bytes_, slot_bytes_}; }
  void clear() {
    count_ = 0;
    if (owner_ != nullptr) return_added();
  }
  /// The batch has datagrams in a buffer of `owner` that goes back with clear(). All buffers added
  /// between two clear() have one owner, and there are at most slots() of them.
  void add_buffer(const std::shared_ptr<BufferOwner>& owner, uint16_t buffer);
  /// False when the batch holds max_datagrams already.
  bool add(const Address& from, Bytes bytes, bool group = false, uint32_t local = 0) {
    if (count_ == datagrams_.size()) return false;
    datagrams_[count_++] = {.from = from, .bytes = bytes, .group = group, .via = 0, .local = local};
    return true;
  }
  size_t room() const { return datagrams_.size() - count_; }

 private:
  void return_added();

  size_t slots_;
  size_t slot_bytes_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<IncomingDatagram> datagrams_;
  size_t count_ = 0;
  std::shared_ptr<BufferOwner> owner_;  // of added_; null: there are none
  std::vector<uint16_t> added_;
};

enum class SendStatus : uint8_t {
  ok,           ///< all datagrams were taken
  would_block,  ///< those before `sent` were taken; the link is full for now
  refused,      ///< the datagram at index `sent` can never be sent (`error` is an errno); skip it
};

struct SendResult {
  size_t sent = 0;
  SendStatus status = SendStatus::ok;
  int error = 0;
};

/// An operation that a link does in a slower way than it was meant to, since the system refuses.
/// Each backend has its own; one for each counter.
struct Degradation {
  Counter counter;
  std::string_view message;  ///< a message without its end, that lives as long as the program
  bool sending = false;      ///< it concerns sending alone
};

/// What an ICMP message says of a datagram that left here. Whoever can send this host a packet can
/// forge one: it informs, and nothing else follows from it.
struct IcmpReport {
  enum class Kind : uint8_t {
    port,        ///< nobody receives there
    host,        ///< no way leads there
    prohibited,  ///< a filter lets nothing through
  };

  Address destination;  ///< of the datagram, as the message has it
  Address reporter;     ///< who sent the message, without a port
  Kind kind = Kind::port;
  ConstBytes quoted;  ///< the beginning of the datagram, as far as the message has it; may be none
};

/// A link that carries datagrams: unreliable, unordered, bounded in size. A handful of calls, all
/// non-blocking, made by one thread at a time (the engine that owns the link).
class DatagramLink {
 public:
  virtual ~DatagramLink() = default;

  /// Sends a burst in order. Stops at the first datagram that cannot be taken.
  virtual SendResult send(std::span<const OutgoingDatagram> burst) = 0;

  /// Clears the batch, then fills it with what has arrived; returns the number of datagrams.
  virtual size_t receive(ReceiveBatch& batch) = 0;

  /// The largest datagram payload, in bytes, to send to `to`: the most that reaches it in one
  /// packet, or, of a link that lets the network fragment, all that a datagram can hold.
  virtual size_t max_datagram(const Address& to) = 0;

  virtual Address local_address() const = 0;
  /// The local address with this number, as an IncomingDatagram has it; of 0 that of the link.
  virtual Address address_of(uint32_t /*number*/) const { return local_address(); }
  /// The number of one of its local addresses; 0 where it has no numbers.
  virtual uint32_t number_of(const Address& /*local*/) { return 0; }

  /// A link that only receives datagrams to `group` and its port (0: this link's): a multicast
  /// address, or a broadcast address of this host's. `interface` is a name; empty: that of this
  /// link's address, or the system's choice. Unlike the other calls, it may be made by any
  /// thread. Throws Error: Errc::invalid_argument (no group, or no such interface), address_in_use,
  /// unsupported_operation, or the system's errno.
  virtual std::unique_ptr<DatagramLink> open_group(const Address& group,
                                                   std::string_view interface);

  /// A descriptor that polls writable when the link is not full, and, without an input_queue() that
  /// gathers all, readable when datagrams wait; -1 where there is none, then `on_ready` is the only
  /// signal.
  virtual int descriptor() const { return -1; }

  /// Tells whether descriptor() is watched from now on, as it is at first. A link that is asked in
  /// every step instead may receive by other means as well. False when asked to be watched while
  /// something waits that descriptor() does not show: receive, and ask again. May be told the same
  /// several times.
  virtual bool set_watched(bool /*watched*/) { return true; }

  /// Where the link announces, under the key (null: it does not), that receive() has something to
  /// hand out; again at the end of each receive() that may have left something. Null: nowhere.
  virtual InputQueue* input_queue() const { return nullptr; }
  virtual void set_key(void* /*key*/) {}

  /// For links without a descriptor: called, from any thread, when something becomes readable.
  virtual void on_ready(std::function<void()> /*callback*/) {}

  /// `callback` is told of each Degradation once: of those that happened already in this call, of
  /// others from within send() and receive().
  virtual void on_degradation(std::function<void(const Degradation&)> /*callback*/) {}

  /// `callback` is told of each IcmpReport that comes from now on, from within send() and
  /// receive(). Links whose networks have no such thing never call it.
  virtual void on_icmp(std::function<void(const IcmpReport&)> /*callback*/) {}

  /// Datagrams that the receive buffer had no room for, since the link was opened.
  virtual uint64_t overflowed() const { return 0; }
};

}  // namespace diwarp::llp
