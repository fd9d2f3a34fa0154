// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "bridge/cm_events.h"
#include "bridge/device.h"
#include "diwarp/connect_options.h"
#include "diwarp/connection_event.h"

namespace diwarp::bridge {

class QueuePair;

/// One connection of a queue pair, or the way to one, over an id of librdmacm. Everything but
/// construction is for holders of the device's mutex.
class Connection final : public CmHandler,
                         public Timed,
                         public std::enable_shared_from_this<Connection> {
 public:
  enum class State : uint8_t {
    idle,
    resolving,  ///< the peer's address, then the route
    resolved,
    routed,
    connecting,
    requested,  ///< by the peer: an answer is due
    accepting,
    established,
    closing,
    over,
  };

  /// The side that connects.
  static std::shared_ptr<Connection> make(Device& device);
  /// The side that a peer asks; `request` came with its event.
  static std::shared_ptr<Connection> of_request(Device& device, CmNotice request);
  ~Connection() override;

  State state() const { return state_; }
  /// A queue pair may be connected with it.
  bool connectable() const {
    return (state_ == State::resolved || state_ == State::routed) && !wanted_;
  }
  /// It is not there yet, and nobody ends it.
  bool opening() const { return connecting() && state_ != State::closing; }
  bool connecting() const { return state_ != State::established && state_ != State::over; }
  Address local_address() const;
  Address peer_address() const;
  const std::vector<std::byte>& private_data() const { return private_data_; }
  RequestedDepths requested_depths() const { return requested_; }
  /// Of the connection.
  uint16_t ord() const { return ord_; }
  uint16_t ird() const { return ird_; }

  /// Null: nobody.
  void observe(ConnectionObserver* observer) { observer_ = observer; }

  // Each of these throws Error where librdmacm refuses.

  void bind(const Address& local);
  void resolve(const Address& local, const Address& peer, Duration timeout);
  void resolve_route();
  /// Goes on to the end by itself, from whatever is resolved by now.
  void connect(const std::shared_ptr<QueuePair>& queue_pair, const ConnectOptions& options);
  void accept(const std::shared_ptr<QueuePair>& queue_pair, const AcceptOptions& options);
  /// Throws Error where the device cannot tell the peer.
  void reject(std::span<const std::byte> private_data);
  /// The same for a request that nobody answers.
  void drop_request();
  /// Posted requests go out first. Over after `timeout` at the latest. One that is being accepted
  /// is closed once it is there.
  void begin_close(Duration timeout);
  /// Over at once; the observer is told nothing.
  void abandon();
  /// The device is gone, or the queue pair failed.
  void lose(std::error_code status);

  /// Throws what a call that waited for the connection throws where it failed.
  [[noreturn]] void throw_failure() const;
  bool failed() const { return state_ == State::over && failure_.has_value(); }

  void on_cm_event(CmNotice notice) override;
  Time deadline() const override { return deadline_; }
  void on_deadline() override;

  rdma_cm_id* id() const { return endpoint_.get(); }

 private:
  int send_reject(std::span<const std::byte> private_data);
  struct Failure {
    CmEventType type;
    std::error_code status;
    std::string message;
  };

  explicit Connection(Device& device, CmEndpoint endpoint);
  std::shared_ptr<QueuePair> live_queue_pair() const;
  void set_deadline(Time deadline);
  int ask_route() const;
  std::string no_route() const;
  void go_on();
  void begin_connect();
  rdma_conn_param parameters(std::span<const std::byte> data, uint16_t ord, uint16_t ird) const;
  void establish(CmNotice notice);
  void end(std::error_code status, bool by_peer);
  bool give_up(Failure failure);
  void fail(CmEventType type, std::error_code status, const std::string& message);
  void fail(const CmNotice& notice);
  void tell(CmEventInfo info);
  void go_on_closing();

  const std::shared_ptr<Device> device_;
  CmEndpoint endpoint_;
  State state_ = State::idle;
  ConnectionObserver* observer_ = nullptr;
  std::weak_ptr<QueuePair> queue_pair_;
  std::optional<ConnectOptions> wanted_;  // connect() was called
  bool route_asked_ = false;              // by the application
  std::optional<Duration> close_asked_;   // while it was accepted
  bool disconnect_sent_ = false;
  Time deadline_ = Time::max();
  Time close_by_ = Time::max();  // closing: when it is over in any case
  std::vector<std::byte> private_data_;
  RequestedDepths requested_;
  uint16_t ord_ = 0;
  uint16_t ird_ = 0;
  std::optional<Failure> failure_;
};

/// Throws Error unless a device can have these: what it decides by itself must be left at its
/// default.
void check_options(const Device& device, const ConnectOptions& options);
void check_options(const Device& device, const AcceptOptions& options);
void check_private_data(std::span<const std::byte> data);

}  // namespace diwarp::bridge
