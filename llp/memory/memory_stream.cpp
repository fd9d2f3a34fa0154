// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "llp/memory/memory_network.h"
#include "llp/memory/ready_signal.h"

namespace diwarp::llp {
namespace {

/// Bytes on their way in one direction. Guarded by the wire's mutex.
class Pipe {
 public:
  explicit Pipe(size_t capacity)
      : memory_(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity_(capacity) {}

  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == capacity_; }
  void clear() { count_ = 0; }

  size_t write(ConstBytes source) {
    const size_t total = std::min(source.size(), capacity_ - count_);
    for (size_t done = 0; done < total;) {
      const size_t at = (head_ + count_) % capacity_;
      const size_t run = std::min(total - done, capacity_ - at);
      std::memcpy(memory_.get() + at, source.data() + done, run);
      done += run;
      count_ += run;
    }
    return total;
  }

  size_t read(Bytes target) {
    const size_t total = std::min(target.size(), count_);
    for (size_t done = 0; done < total;) {
      const size_t run = std::min(total - done, capacity_ - head_);
      std::memcpy(target.data() + done, memory_.get() + head_, run);
      done += run;
      count_ -= run;
      head_ = (head_ + run) % capacity_;
    }
    return total;
  }

  bool ended = false;  // the writer sends no more

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t capacity_;
  size_t head_ = 0;
  size_t count_ = 0;
};

/// The state that both ends share. End i writes to pipe i and reads from the other.
struct Wire {
  explicit Wire(size_t capacity) : pipes{Pipe(capacity), Pipe(capacity)} {}

  std::mutex mutex;  // guards pipes, gone and reset
  std::array<Pipe, 2> pipes;
  std::array<bool, 2> gone{};  // the end is destroyed
  bool reset = false;
  std::array<ReadySignal, 2> ready;
};

constexpr IoResult kWouldBlock = {IoStatus::would_block, 0, 0};
constexpr IoResult kReset = {IoStatus::failed, 0, ECONNRESET};

class MemoryStream final : public Stream {
 public:
  MemoryStream(std::shared_ptr<Wire> wire, size_t end, size_t maximum_segment)
      : wire_(std::move(wire)), end_(end), maximum_segment_(maximum_segment) {}

  ~MemoryStream() override {
    {
      const std::lock_guard lock(wire_->mutex);
      wire_->gone[end_] = true;
      outgoing().ended = true;
      if (!incoming().empty()) break_wire();
    }
    wire_->ready[end_].set({});
    tell_peer();
  }

  IoResult send(std::span<const ConstBytes> pieces) override {
    size_t taken = 0;
    {
      const std::lock_guard lock(wire_->mutex);
      if (wire_->reset) return kReset;
      if (outgoing().ended) return {IoStatus::failed, 0, EPIPE};
      if (wire_->gone[peer()]) {
        break_wire();
        return kReset;
      }
      for (ConstBytes piece : pieces) taken += outgoing().write(piece);
    }
    if (taken == 0) return kWouldBlock;
    tell_peer();
    return {IoStatus::ok, taken, 0};
  }

  IoResult receive(Bytes buffer) override {
    size_t taken = 0;
    bool made_room = false;
    {
      const std::lock_guard lock(wire_->mutex);
      if (wire_->reset) return kReset;
      if (buffer.empty()) return kWouldBlock;
      if (incoming().empty())
        return incoming().ended ? IoResult{IoStatus::closed, 0, 0} : kWouldBlock;
      made_room = incoming().full();
      taken = incoming().read(buffer);
    }
    if (made_room) tell_peer();
    return {IoStatus::ok, taken, 0};
  }

  void shutdown_send() override {
    {
      const std::lock_guard lock(wire_->mutex);
      outgoing().ended = true;
    }
    tell_peer();
  }

  int error() override {
    const std::lock_guard lock(wire_->mutex);
    return wire_->reset ? ECONNRESET : 0;
  }

  void abort() override {
    {
      const std::lock_guard lock(wire_->mutex);
      break_wire();
    }
    tell_peer();
  }

  size_t maximum_segment() const override { return maximum_segment_; }
  Address local_address() const override { return address_of(end_); }
  Address peer_address() const override { return address_of(peer()); }

  void on_ready(std::function<void()> callback) override {
    wire_->ready[end_].set(std::move(callback));
    if (can_move()) wire_->ready[end_].fire();
  }

 private:
  static Address address_of(size_t end) {
    return Address::loopback(AddressFamily::ipv4, static_cast<uint16_t>(end + 1));
  }

  size_t peer() const { return 1 - end_; }
  Pipe& outgoing() { return wire_->pipes[end_]; }
  Pipe& incoming() { return wire_->pipes[peer()]; }
  void tell_peer() { wire_->ready[peer()].fire(); }

  bool can_move() {
    const std::lock_guard lock(wire_->mutex);
    return wire_->reset || incoming().ended || !incoming().empty();
  }

  void break_wire() {
    wire_->reset = true;
    for (Pipe& pipe : wire_->pipes) pipe.clear();
  }

  const std::shared_ptr<Wire> wire_;
  const size_t end_;
  const size_t maximum_segment_;
};

}  // namespace

std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> memory_stream_pair(
    size_t buffer_bytes, size_t maximum_segment) {
  const auto wire = std::make_shared<Wire>(buffer_bytes);
  return {std::make_unique<MemoryStream>(wire, 0, maximum_segment),
          std::make_unique<MemoryStream>(wire, 1, maximum_segment)};
}

}  // namespace diwarp::llp
