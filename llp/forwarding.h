// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "llp/datagram_link.h"
#include "llp/input_queue.h"
#include "llp/stream.h"

/// A decorator of a link or a stream passes calls that do not concern it on to the one inside,
/// which it owns. It does not pass on calls that would bring bytes past it: input queues that
/// gather all, sending without copying, receives into several buffers.
namespace diwarp::llp {

class ForwardingDatagramLink : public DatagramLink {
 public:
  SendResult send(std::span<const OutgoingDatagram> burst) override { return inner_->send(burst); }
  size_t receive(ReceiveBatch& batch) override { return inner_->receive(batch); }
  size_t max_datagram(const Address& to) override { return inner_->max_datagram(to); }
  Address local_address() const override { return inner_->local_address(); }
  Address address_of(uint32_t number) const override { return inner_->address_of(number); }
  uint32_t number_of(const Address& local) override { return inner_->number_of(local); }
  /// Nothing happens to what a group receives here: its senders' links see to it.
  std::unique_ptr<DatagramLink> open_group(const Address& group,
                                           std::string_view interface) override {
    return inner_->open_group(group, interface);
  }
  int descriptor() const override { return inner_->descriptor(); }
  bool set_watched(bool watched) override { return inner_->set_watched(watched); }
  void on_ready(std::function<void()> callback) override { inner_->on_ready(std::move(callback)); }
  void on_degradation(std::function<void(const Degradation&)> callback) override {
    inner_->on_degradation(std::move(callback));
  }
  void on_icmp(std::function<void(const IcmpReport&)> callback) override {
    inner_->on_icmp(std::move(callback));
  }
  uint64_t overflowed() const override { return inner_->overflowed(); }
  InputQueue* input_queue() const override {
    InputQueue* const queue = inner_->input_queue();
    return queue != nullptr && !queue->gathers_all() ? queue : nullptr;
  }
  void set_key(void* key) override { inner_->set_key(key); }

  DatagramLink& inner() const { return *inner_; }

 protected:
  explicit ForwardingDatagramLink(std::unique_ptr<DatagramLink> inner) : inner_(std::move(inner)) {}

 private:
  const std::unique_ptr<DatagramLink> inner_;
};

class ForwardingStream : public Stream {
 public:
  IoResult send(std::span<const ConstBytes> pieces) override { return inner_->send(pieces); }
  IoResult receive(Bytes buffer) override { return inner_->receive(buffer); }
  void shutdown_send() override { inner_->shutdown_send(); }
  int error() override { return inner_->error(); }
  void abort() override { inner_->abort(); }
  size_t maximum_segment() const override { return inner_->maximum_segment(); }
  Address local_address() const override { return inner_->local_address(); }
  Address peer_address() const override { return inner_->peer_address(); }
  int descriptor() const override { return inner_->descriptor(); }
  PeerProbe* peer_probe() override { return inner_->peer_probe(); }
  bool set_busy_poll(Duration time) override { return inner_->set_busy_poll(time); }
  bool send_needs_crc() const override { return inner_->send_needs_crc(); }
  bool received_needs_crc() const override { return inner_->received_needs_crc(); }
  void stay_on_wire() override { inner_->stay_on_wire(); }
  bool set_watched(bool watched) override { return inner_->set_watched(watched); }
  RoomNotice room_notice() const override { return inner_->room_notice(); }
  InputQueue* input_queue() const override {
    InputQueue* const queue = inner_->input_queue();
    return queue != nullptr && !queue->gathers_all() ? queue : nullptr;
  }
  void set_key(void* key) override { inner_->set_key(key); }
  void on_ready(std::function<void()> callback) override { inner_->on_ready(std::move(callback)); }

  Stream& inner() const { return *inner_; }

 protected:
  explicit ForwardingStream(std::unique_ptr<Stream> inner) : inner_(std::move(inner)) {}
  /// Only the end may follow.
  std::unique_ptr<Stream> take_inner() { return std::move(inner_); }

 private:
  std::unique_ptr<Stream> inner_;
};

}  // namespace diwarp::llp
