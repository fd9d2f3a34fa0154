// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>
#include <utility>

#include "diwarp/error.h"
#include "provider/cm_channel.h"
#include "rnic/cm/blocking_startup.h"
#include "rnic/cm/cm_core.h"
#include "rnic/cm/cm_id.h"
#include "rnic/cm/connection_request.h"
#include "rnic/cm/startup_answers.h"
#include "rnic/cm/startup_checks.h"
#include "rnic/rc/rc_queue_pair.h"

namespace diwarp::rnic {

namespace {

void require(bool right, const char* what) {
  if (right) return;
  throw Error(make_error_code(Errc::invalid_state),
              std::string(what) + " is not for a connection manager id in this state");
}

}  // namespace

CmId::CmId(std::shared_ptr<Control> control, std::shared_ptr<provider::CmChannel> channel,
           uint64_t context)
    : CmId(control, std::make_shared<CmCore>(control, *control, std::move(channel), context)) {}

CmId::CmId(std::shared_ptr<Control> control, std::shared_ptr<CmCore> core)
    : control_(std::move(control)), core_(std::move(core)) {
  control_->add_removable(core_);
  core_->channel()->add({control_, &control_->device()});
}

std::shared_ptr<CmId> CmId::of_request(std::shared_ptr<CmCore> core) {
  std::shared_ptr<Control> control = core->owner.lock();
  if (!control) return nullptr;
  return std::shared_ptr<CmId>(new CmId(std::move(control), std::move(core)));
}

CmId::~CmId() {
  core_->state.move({CmState::idle, CmState::bound, CmState::address_resolved,
                     CmState::route_resolved, CmState::listening, CmState::connecting,
                     CmState::requested, CmState::accepting, CmState::established, CmState::over},
                    CmState::closed);
  if (core_->acceptor) control_->exclusively([this] { core_->acceptor->close(); });
  control_->exclusively([this] {
    if (const auto connecting = std::exchange(core_->connecting, nullptr)) connecting->cancel();
  });
  for (provider::CmChannel::Record& record : core_->channel()->purge(core_->number))
    if (record.request) record.request->drop();
  core_->reject_request({});
  control_->device().engine().exclusively([this] {
    RcQueuePair* const queue_pair = core_->connected();
    core_->detach();
    if (queue_pair != nullptr) queue_pair->abandon();
  });
}

/// The address that it was bound to, with its port, or the device's.
Address CmId::source_of_connection() const {
  // guard(connection-manager): => return control_->device().address();
  return core_->state.bound().value_or(control_->device().address());
}

void CmId::resolve_addr(const Address& peer) {
  const CmState before = core_->state.now();
  require(before == CmState::idle || before == CmState::bound, "resolve_addr()");
  const Address own = source_of_connection();
  check_peer(own, peer);
  Address source;
  if (const std::error_code error = control_->connector().find_source(own, peer, source)) {
    core_->push({.type = CmEventType::addr_error,
                 .status = error,
                 .message = peer.to_string() + " cannot be reached from " + own.host() + ": " +
                            error.message()});
    return;
  }
  core_->state.set_addresses(source.with_port(own.port()), peer);
  require(core_->state.move({before}, CmState::address_resolved), "resolve_addr()");
  core_->push({.type = CmEventType::addr_resolved});
}

void CmId::resolve_route() {
  require(core_->state.move({CmState::address_resolved}, CmState::route_resolved),
          "resolve_route()");
  core_->push({.type = CmEventType::route_resolved});
}

void CmId::bind(const Address& local) {
  const Address own = control_->device().address();
  const bool everywhere = own.is_any() && (own.family() == AddressFamily::ipv6 ||
                                           local.family() == AddressFamily::ipv4);
  const bool fits = everywhere || (local.family() == own.family() &&
                                   (local.is_any() || local.with_port(0) == own));
  if (!fits)  // guard(connection-manager): !fits => false
    throw Error(make_error_code(Errc::invalid_argument),
                "A device on " + own.host() + " cannot be bound to " + local.to_string());
  require(core_->state.move({CmState::idle}, CmState::bound), "bind()");
  const bool names_own = local.is_any() && local.family() == own.family();
  core_->state.bind(names_own ? own.with_port(local.port()) : local);
}

void CmId::listen(const ListenOptions& options) {
  const CmState before = core_->state.now();
  require(before == CmState::idle || before == CmState::bound, "listen()");
  const Address local =
      before == CmState::bound ? core_->state.local() : control_->device().address();
  auto opened = open_listener(*control_, local, options);
  core_->state.set_addresses(opened->local_address(), {});
  require(core_->state.move({before}, CmState::listening), "listen()");
  core_->acceptor =
      std::make_shared<Acceptor>(*control_, std::move(opened), options,
                                 [core = std::weak_ptr(core_), most = options.max_requests,
                                  shares = RequestShares()](IncomingRequest& request) {
                                   if (const auto listener = core.lock())
                                     listener->on_request(request, most, shares);
                                 });
  boost::asio::post(control_->context(), [acceptor = core_->acceptor] { acceptor->begin(); });
}

void CmId::connect(provider::QueuePair& queue_pair, const ConnectOptions& options) {
  RcQueuePair& taker = taker_of(queue_pair, *control_);
  const auto connecting =
      std::make_shared<Connecting>(*control_, source_of_connection(), core_->state.peer(), options);
  const CmState before = core_->state.now();
  require(before == CmState::address_resolved || before == CmState::route_resolved, "connect()");
  control_->device().engine().exclusively([&] { core_->attach(taker); });
  require(core_->state.move({before}, CmState::connecting), "connect()");
  boost::asio::post(control_->context(), [connecting, core = std::weak_ptr(core_)] {
    const auto id = core.lock();
    if (!id || id->state.now() != CmState::connecting) return;
    id->connecting = connecting;
    connecting->begin([core](ConnectOutcome outcome) {
      if (const auto waiting = core.lock()) waiting->on_outcome(std::move(outcome));
    });
  });
}

void CmId::accept(provider::QueuePair& queue_pair, const AcceptOptions& options) {
  RcQueuePair& taker = taker_of(queue_pair, *control_);
  require(core_->state.now() == CmState::requested, "accept()");
  check_options(options, core_->request.frame);
  control_->device().engine().exclusively([&] { core_->attach(taker); });
  require(core_->state.move({CmState::requested}, CmState::accepting), "accept()");
  try {
    NegotiatedConnection connection = accept_connection(std::move(core_->request), options);
    control_->device().engine().exclusively([&] { core_->start(std::move(connection)); });
  } catch (const Error&) {
    core_->state.move({CmState::accepting}, CmState::over);
    control_->device().engine().exclusively([this] { core_->detach(); });
    throw;
  }
}

void CmId::reject(std::span<const std::byte> private_data) {
  require(core_->state.now() == CmState::requested, "reject()");
  check_private_data(private_data, core_->request.frame.enhanced.has_value());
  require(core_->state.move({CmState::requested}, CmState::over), "reject()");
  core_->reject_request(private_data);
}

void CmId::disconnect(const DisconnectOptions& options) {
  const CmState now = core_->state.now();
  require(now == CmState::established || now == CmState::accepting || now == CmState::over,
          "disconnect()");
  if (now == CmState::over) return;
  control_->device().engine().exclusively([this] {
    if (RcQueuePair* queue_pair = core_->connected()) queue_pair->begin_disconnect();
  });
  boost::asio::io_context& context = control_->context();
  boost::asio::post(
      context, [&context, core = std::weak_ptr(core_), timeout = bounded_timeout(options.timeout)] {
        const auto timer = std::make_shared<boost::asio::steady_timer>(context, timeout);
        timer->async_wait([timer, core](const AsioError&) {
          if (const auto id = core.lock()) id->give_up_closing();
        });
      });
}

void CmId::migrate(std::shared_ptr<provider::CmChannel> channel) {
  channel->add({control_, &control_->device()});
  core_->migrate(std::move(channel));
}

uint64_t CmId::number() const { return core_->number; }
uint64_t CmId::context() const { return core_->context(); }
void CmId::set_context(uint64_t context) { core_->set_context(context); }
Address CmId::local_address() const { return core_->state.local(); }
Address CmId::peer_address() const { return core_->state.peer(); }

}  // namespace diwarp::rnic
