// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/cm_core.h"

#include <new>
#include <utility>

#include "diwarp/error.h"
#include "rnic/cm/cm_id.h"
#include "rnic/cm/startup_answers.h"
#include "rnic/cm/startup_checks.h"
#include "rnic/rc/rc_queue_pair.h"
#include "rnic/rc/rc_state.h"

namespace diwarp::rnic {

namespace {

/// As the kernel's connection manager sorts them.
CmEventType sort(std::error_code error) {
  if (error == make_error_code(Errc::rejected) || error == make_error_code(Errc::connection_lost) ||
      error == std::errc::connection_refused || error == std::errc::connection_reset)
    return CmEventType::rejected;
  return error == std::errc::timed_out ? CmEventType::unreachable : CmEventType::connect_error;
}

}  // namespace

CmCore::CmCore(std::weak_ptr<Control> its_owner, Control& control,
               std::shared_ptr<provider::CmChannel> channel, uint64_t context)
    : number(provider::next_cm_number()),
      owner(std::move(its_owner)),
      control_(control),
      channel_(std::move(channel)),
      context_(context),
      pending_(std::make_shared<std::atomic<size_t>>(0)) {}

// --- Telling.

void CmCore::push(CmEventInfo info) {
  if (info.id == 0) info.id = number;
  info.context = context_;
  // An id that is closed tells nothing: under the lock, so that purge() finds all that came before.
  state.unless_closed([&] {
    const std::lock_guard lock(channel_mutex_);
    channel_->push({.info = std::move(info)});
  });
}

std::shared_ptr<provider::CmChannel> CmCore::channel() const {
  const std::lock_guard lock(channel_mutex_);
  return channel_;
}

void CmCore::migrate(std::shared_ptr<provider::CmChannel> channel) {
  const std::lock_guard lock(channel_mutex_);
  if (channel == channel_) return;
  channel_->move_events(number, *channel);  // guard(connection-manager)
  channel_ = std::move(channel);
}

void CmCore::fail(CmEventType type, std::error_code status, std::string message,
                  std::vector<std::byte> private_data) {
  push({.type = type,
        .status = status,
        .message = std::move(message),
        .private_data = std::move(private_data)});
}

void CmCore::tell_established(const mpa::NegotiatedParameters& parameters,
                              std::vector<std::byte> private_data) {
  push({.type = CmEventType::established,
        .private_data = std::move(private_data),
        .ord = parameters.ord,
        .ird = parameters.ird});
}

/// Where there is no memory for the event the id is over all the same.
void CmCore::tell_ended(std::error_code status) {
  try {
    push_ended(status);
  } catch (const std::bad_alloc&) {
    control_.counters().add_shared(Counter::events_dropped);
  }
}

void CmCore::push_ended(std::error_code status) {
  if (state.move({CmState::established}, CmState::over))
    push({.type = CmEventType::disconnected, .status = status});
  else if (state.move({CmState::accepting}, CmState::over))
    fail(CmEventType::connect_error, make_error_code(Errc::connection_lost),
         state.peer().to_string() +
             " was accepted and ended the connection before its first message");
}

void CmCore::on_removal() { push({.type = CmEventType::device_removal}); }

// --- Listening.

void CmCore::on_request(IncomingRequest& incoming, size_t most, const RequestShares& shares) {
  provider::CmChannel::Record record = request_record(incoming);
  const std::lock_guard lock(channel_mutex_);
  // guard(connection-manager): without if (*pending_ < most)
  if (*pending_ < most) return push_request(std::move(record));
  const auto request_of = [this](const provider::CmChannel::Record& one) {
    const bool to_this = one.request && one.info.listener == number;
    return to_this ? &static_cast<CmCore&>(*one.request).request : nullptr;
  };
  const provider::CmChannel::Record refused =
      channel_->exchange(std::move(record), [&](auto& waiting, const auto& newcomer) {
        return shares.giving_way(waiting, *request_of(newcomer), request_of);
      });
  incoming = std::move(*request_of(refused));
}

/// Moves the request to an id of its own.
provider::CmChannel::Record CmCore::request_record(IncomingRequest& incoming) {
  const auto core = std::make_shared<CmCore>(owner, control_, channel(), context_);
  core->pending_ = pending_;
  core->state.set_addresses(incoming.stream->local_address(), incoming.stream->peer_address());
  core->state.move({CmState::idle}, CmState::requested);
  const RequestedDepths depths = depths_of(incoming.frame);
  CmEventInfo info{.type = CmEventType::connect_request,
                   .id = core->number,
                   .listener = number,
                   .context = context_,
                   .private_data = std::move(incoming.private_data),
                   .ord = depths.ord,
                   .ird = depths.ird};
  core->request = std::move(incoming);
  return {.info = std::move(info), .request = core};
}

void CmCore::push_request(provider::CmChannel::Record record) {
  ++*pending_;
  try {
    channel_->push(std::move(record));
  } catch (const std::bad_alloc&) {
    --*pending_;
    throw;
  }
}

std::shared_ptr<provider::CmId> CmCore::fetch(const std::shared_ptr<provider::CmChannel>& channel) {
  --*pending_;
  migrate(channel);  // its listener may have moved
  return CmId::of_request(shared_from_this());
}

void CmCore::reject_request(std::span<const std::byte> private_data) {
  if (request.stream) reject_connection(control_, std::move(request), private_data);
}

// --- Connections.

void CmCore::attach(RcQueuePair& queue_pair) {
  require_init(queue_pair.state());
  queue_pair.observers().observe(shared_from_this());
  queue_pair_ = &queue_pair;
}

void CmCore::detach() {
  connected_ = false;
  if (RcQueuePair* queue_pair = std::exchange(queue_pair_, nullptr))
    queue_pair->observers().observe(nullptr);
}

void CmCore::on_outcome(ConnectOutcome outcome) {
  connecting.reset();
  NegotiatedConnection connection;
  if (!outcome.error) connection.stream = unbroken(std::move(outcome.stream));
  if (!connection.stream) {
    control_.with_baton([this] { detach(); });
    if (!outcome.error) outcome.error = make_error_code(Errc::connection_lost);
    if (state.move({CmState::connecting}, CmState::over))
      fail(sort(outcome.error), outcome.error, std::move(outcome.message),
           std::move(outcome.private_data));
    return;
  }
  connection.parameters = outcome.parameters;
  connection.timeouts = outcome.timeouts;
  connection.leftover = std::move(outcome.leftover);
  connection.private_data = std::move(outcome.private_data);
  control_.with_baton([&] { start(std::move(connection)); });
}

void CmCore::start(NegotiatedConnection connection) {
  if (state.now() == CmState::closed) return;
  const bool waits = !connection.initiator && connection.parameters.ready != ReadyToReceive::none;
  std::vector<std::byte> private_data;
  if (connection.initiator) private_data = std::move(connection.private_data);
  parameters_ = connection.parameters;
  progress_ = {};
  if (!hand_over(std::move(connection))) return;
  // guard(connection-manager): without (!waits || progress_.ready) &&
  if ((!waits || progress_.ready) &&
      state.move({CmState::connecting, CmState::accepting}, CmState::established))
    tell_established(parameters_, std::move(private_data));
  if (progress_.ended) tell_ended(progress_.end_status);
}

bool CmCore::hand_over(NegotiatedConnection connection) {
  progress_.starting = true;
  try {
    if (queue_pair_ == nullptr)
      throw Error(
          make_error_code(Errc::invalid_state),
          "The queue pair went, or was given to another id, while it was being connected: keep it, "
          "and give it to one id alone, until that is established");
    state.set_addresses(connection.stream->local_address(), connection.stream->peer_address());
    connected_ = true;
    queue_pair_->take(std::move(connection));
    progress_.starting = false;
    return true;
  } catch (const std::bad_alloc&) {
    progress_.starting = false;
    detach();
    throw;
  } catch (const Error& error) {
    progress_.starting = false;
    if (state.move({CmState::connecting, CmState::accepting}, CmState::over))
      fail(CmEventType::connect_error, error.code(), error.what());
    detach();
    return false;
  }
}

void CmCore::on_ready() {
  progress_.ready = true;
  if (progress_.starting) return;
  if (!state.move({CmState::accepting}, CmState::established)) return;
  try {
    tell_established(parameters_, {});
  } catch (const std::bad_alloc&) {
    control_.counters().add_shared(Counter::events_dropped);
  }
}

void CmCore::on_end(std::error_code status) {
  connected_ = false;
  progress_.ended = true;
  progress_.end_status = status;
  if (!progress_.starting) tell_ended(status);
}

void CmCore::on_detached() {
  queue_pair_ = nullptr;
  connected_ = false;
  if (!progress_.starting) tell_ended();
}

void CmCore::give_up_closing() {
  control_.with_baton([this] {
    if (RcQueuePair* queue_pair = connected()) queue_pair->give_up_closing();
  });
}

}  // namespace diwarp::rnic
