// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "provider/cm_channel.h"
#include "rnic/cm/acceptor.h"
#include "rnic/cm/cm_id_state.h"
#include "rnic/cm/connecting.h"
#include "rnic/cm/control.h"
#include "rnic/cm/request_shares.h"
#include "rnic/context/connection_observer.h"
#include "rnic/context/negotiated_connection.h"

namespace diwarp::rnic {

class RcQueuePair;

/// The parts of an id, but for its device: handlers of the control path and of queue pairs keep
/// it alive, and they must not keep the device alive, since the end of the device waits for them.
///
/// Lock order: the engine's baton, then that of its state, then its channel_mutex_, then the
/// channel's.
class CmCore final : public ConnectionObserver,
                     public Removable,
                     public provider::CmRequest,
                     public std::enable_shared_from_this<CmCore> {
 public:
  CmCore(std::weak_ptr<Control> owner, Control& control,
         std::shared_ptr<provider::CmChannel> channel, uint64_t context);

  const uint64_t number;
  const std::weak_ptr<Control> owner;  ///< of control_; gone once the device is going
  CmIdState state;

  // --- Any thread.

  uint64_t context() const { return context_; }
  void set_context(uint64_t context) { context_ = context; }
  void push(CmEventInfo info);
  void reject_request(std::span<const std::byte> private_data);
  std::shared_ptr<provider::CmId> fetch(
      const std::shared_ptr<provider::CmChannel>& channel) override;
  void drop() override { reject_request({}); }
  std::shared_ptr<provider::CmChannel> channel() const;
  /// Events go there from now on, and so do those that are not fetched yet.
  void migrate(std::shared_ptr<provider::CmChannel> channel);
  void on_removal() override;

  // --- On the control path.

  /// Leaves in `request` what is to be rejected: itself, or what gives way to it.
  void on_request(IncomingRequest& request, size_t most, const RequestShares& shares);
  void on_outcome(ConnectOutcome outcome);
  void give_up_closing();

  // --- With the baton.

  void attach(RcQueuePair& queue_pair);
  void detach();
  /// Hands the connection to the queue pair, and tells what came of it.
  void start(NegotiatedConnection connection);
  /// The queue pair, while it has this id's connection; else null.
  // guard(connection-manager): connected_ ? queue_pair_ : nullptr => queue_pair_
  RcQueuePair* connected() { return connected_ ? queue_pair_ : nullptr; }
  void on_ready() override;
  void on_end(std::error_code status) override;
  void on_detached() override;

  // The id's own; set before handlers know of them.
  IncomingRequest request;                 ///< requested
  std::shared_ptr<Acceptor> acceptor;      ///< listening
  std::shared_ptr<Connecting> connecting;  ///< connecting

 private:
  /// The state of the connection that was handed to the queue pair last.
  struct Progress {
    bool starting = false;  // start() runs: it tells at its end of events that come meanwhile
    bool ready = false;
    bool ended = false;
    std::error_code end_status;
  };

  void fail(CmEventType type, std::error_code status, std::string message,
            std::vector<std::byte> private_data = {});
  void tell_established(const mpa::NegotiatedParameters& parameters,
                        std::vector<std::byte> private_data);
  bool hand_over(NegotiatedConnection connection);
  void tell_ended(std::error_code status = {});
  void push_ended(std::error_code status);
  provider::CmChannel::Record request_record(IncomingRequest& incoming);
  void push_request(provider::CmChannel::Record record);

  Control& control_;
  mutable std::mutex channel_mutex_;  // guards channel_; held while something is put into it
  std::shared_ptr<provider::CmChannel> channel_;
  std::atomic<uint64_t> context_;
  std::shared_ptr<std::atomic<size_t>> pending_;  // requests that nobody fetched: of the listener

  // Guarded by the baton.
  RcQueuePair* queue_pair_ = nullptr;
  mpa::NegotiatedParameters parameters_;
  bool connected_ = false;  // the queue pair has this id's connection; later it may have another
  Progress progress_;
};

}  // namespace diwarp::rnic
