// SPDX-License-Identifier: Apache-2.0
#include "bridge/connection.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "bridge/queue_pair.h"
#include "bridge/refuse.h"
#include "bridge/sigpipe_guard.h"

namespace diwarp::bridge {
namespace {

/// What librdmacm has for an address to be resolved, which for iWARP means a route to it.
constexpr Duration kResolveTimeout = std::chrono::seconds(10);
/// How often it is looked whether what was posted is out.
constexpr Duration kCloseStep = std::chrono::milliseconds(1);
/// librdmacm takes no more of a connection's private data, and MPA's own header takes 4 of them.
constexpr size_t kMostPrivateData = 251;

/// As librdmacm has its timeouts.
int milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

std::error_code system_error(int error) { return {error, std::system_category()}; }

Address address_of(const sockaddr& name) {
  return name.sa_family == 0 ? Address() : Address::from_sockaddr(&name);
}

/// The device's limit as librdmacm reads it: 8 bits.
uint8_t depth(uint16_t wanted, int most) {
  return static_cast<uint8_t>(std::min<int>({wanted, static_cast<uint8_t>(most), 255}));
}

/// RFC 6581 has 14 bits for each, and one value that says that there is no number.
void check_depths(uint16_t ord, uint16_t ird) {
  constexpr uint16_t kDeepest = 16382;
  if (ord > kDeepest || ird > kDeepest)
    refuse(Errc::invalid_argument, "ord and ird must be from 0 to 16,382");
}

void refuse_set(const Device& device, bool set, const char* option) {
  if (set) device.refuse_unsupported(std::string(option) + ", which it decides by itself");
}

}  // namespace

void check_private_data(std::span<const std::byte> data) {
  if (data.size() > kMostPrivateData)
    refuse(Errc::invalid_argument,
           "A hardware device carries at most " + std::to_string(kMostPrivateData) +
               " bytes of private data, not " + std::to_string(data.size()));
}

void check_options(const Device& device, const ConnectOptions& options) {
  const ConnectOptions defaults;
  check_private_data(options.private_data);
  check_depths(options.ord, options.ird);
  refuse_set(device, options.crc != defaults.crc, "a choice of CRCs");
  refuse_set(device, options.revision != defaults.revision, "MPA's revision");
  refuse_set(device, options.peer_to_peer != defaults.peer_to_peer, "peer_to_peer");
  refuse_set(device, options.fallback != defaults.fallback, "fallback");
  refuse_set(device, options.markers, "markers");
  refuse_set(device, options.keep_alive.has_value(), "keep_alive");
  refuse_set(device, options.user_timeout.has_value(), "user_timeout");
}

void check_options(const Device& device, const AcceptOptions& options) {
  check_private_data(options.private_data);
  check_depths(options.ord, options.ird);
  refuse_set(device, options.crc != AcceptOptions().crc, "a choice of CRCs");
  refuse_set(device, options.markers, "markers");
  refuse_set(device, options.keep_alive.has_value(), "keep_alive");
  refuse_set(device, options.user_timeout.has_value(), "user_timeout");
}

// --- Beginnings.

Connection::Connection(Device& device, CmEndpoint endpoint)
    : device_(device.shared_from_this()), endpoint_(std::move(endpoint)) {}

Connection::~Connection() = default;

std::shared_ptr<Connection> Connection::make(Device& device) {
  std::shared_ptr<Connection> made(new Connection(device, device.make_endpoint()));
  made->endpoint_.handle_with(made);
  return made;
}

std::shared_ptr<Connection> Connection::of_request(Device& device, CmNotice request) {
  std::shared_ptr<Connection> made(new Connection(device, std::move(request.request)));
  made->endpoint_.handle_with(made);
  made->state_ = State::requested;
  made->private_data_ = std::move(request.private_data);
  made->requested_ = {.ord = request.initiator_depth, .ird = request.responder_resources};
  return made;
}

Address Connection::local_address() const {
  return endpoint_ ? address_of(id()->route.addr.src_addr) : Address();
}

Address Connection::peer_address() const {
  return endpoint_ ? address_of(id()->route.addr.dst_addr) : Address();
}

/// The queue pair; null where it is gone. It may go at once: its end needs the mutex.
std::shared_ptr<QueuePair> Connection::live_queue_pair() const {
  device_->reserve_drops(1);
  std::shared_ptr<QueuePair> queue_pair = queue_pair_.lock();
  if (queue_pair) device_->drop_later(queue_pair);
  return queue_pair;
}

void Connection::set_deadline(Time deadline) {
  const bool first = deadline_ == Time::max();
  deadline_ = deadline;
  if (first && deadline != Time::max()) device_->add_timed(weak_from_this());
}

void Connection::bind(const Address& local) {
  sockaddr_storage name;
  local.to_sockaddr(name);
  if (device_->cm().bind_addr(id(), reinterpret_cast<sockaddr*>(&name)) != 0)
    refuse_errno(errno,
                 "The address " + local.to_string() + " cannot be bound on " + device_->name());
}

void Connection::resolve(const Address& local, const Address& peer, Duration timeout) {
  sockaddr_storage from;
  sockaddr_storage to;
  local.to_sockaddr(from);
  peer.to_sockaddr(to);
  const int wait = milliseconds(timeout < Duration::zero() ? kResolveTimeout
                                                           : std::min(timeout, kResolveTimeout));
  if (device_->cm().resolve_addr(id(), reinterpret_cast<sockaddr*>(&from),
                                 reinterpret_cast<sockaddr*>(&to), wait) != 0)
    refuse_errno(errno, peer.to_string() + " cannot be reached from " + device_->name());
  state_ = State::resolving;
}

/// The errno where no route can be looked for.
int Connection::ask_route() const {
  const int wait = milliseconds(kResolveTimeout);
  return device_->cm().resolve_route(id(), wait) == 0 ? 0 : errno;
}

std::string Connection::no_route() const {
  return "There is no route to the peer from " + device_->name();
}

void Connection::resolve_route() {
  if (const int error = ask_route()) refuse_errno(error, no_route());
  route_asked_ = true;
}

/// The next step towards a connection.
void Connection::go_on() {
  if (const int error = ask_route())
    fail(CmEventType::connect_error, system_error(error), no_route());
}

void Connection::connect(const std::shared_ptr<QueuePair>& queue_pair,
                         const ConnectOptions& options) {
  queue_pair->attach(shared_from_this());
  queue_pair_ = queue_pair;
  wanted_ = options;
  set_deadline(deadline_after(SteadyClock::instance().now(), options.timeout));
  if (state_ == State::resolved && !route_asked_) go_on();
  if (state_ == State::routed) begin_connect();
}

rdma_conn_param Connection::parameters(std::span<const std::byte> data, uint16_t ord,
                                       uint16_t ird) const {
  rdma_conn_param all{};
  all.private_data = data.data();
  all.private_data_len = static_cast<uint8_t>(data.size());
  all.initiator_depth = depth(ord, device_->limits().max_qp_init_rd_atom);
  all.responder_resources = depth(ird, device_->limits().max_qp_rd_atom);
  const std::shared_ptr<QueuePair> queue_pair = live_queue_pair();
  all.qp_num = queue_pair ? queue_pair->number() : 0;
  all.srq = queue_pair && queue_pair->has_shared_receives() ? 1 : 0;
  return all;
}

void Connection::begin_connect() {
  rdma_conn_param all = parameters({wanted_->private_data.data(), wanted_->private_data.size()},
                                   wanted_->ord, wanted_->ird);
  state_ = State::connecting;
  const SigpipeGuard guard;
  if (device_->cm().connect(id(), &all) == 0) return;
  fail(errno == ECONNREFUSED ? CmEventType::rejected : CmEventType::connect_error,
       system_error(errno), "The device " + device_->name() + " did not connect");
}

void Connection::accept(const std::shared_ptr<QueuePair>& queue_pair,
                        const AcceptOptions& options) {
  queue_pair->attach(shared_from_this());
  queue_pair_ = queue_pair;
  const uint16_t ord = std::min(options.ord, requested_.ord);
  rdma_conn_param all =
      parameters({options.private_data.data(), options.private_data.size()}, ord, options.ird);
  state_ = State::accepting;
  const SigpipeGuard guard;
  if (device_->cm().accept(id(), &all) == 0) return;
  const std::error_code error = system_error(errno);
  const std::string message = "The connection could not be accepted: " + error.message();
  give_up({.type = CmEventType::connect_error, .status = error, .message = message});
  refuse(Errc::connection_lost, message);
}

void Connection::reject(std::span<const std::byte> private_data) {
  if (const int error = send_reject(private_data))
    refuse_errno(error, "The request was dropped, as the device could not send the rejection");
}

void Connection::drop_request() { static_cast<void>(send_reject({})); }

/// Returns an errno. The end of the connection's id drops it in any case.
int Connection::send_reject(std::span<const std::byte> private_data) {
  state_ = State::over;
  const SigpipeGuard guard;
  const bool sent = device_->cm().reject(id(), private_data.data(),
                                         static_cast<uint8_t>(private_data.size())) == 0;
  return sent ? 0 : errno;
}

// --- Events.

void Connection::on_cm_event(CmNotice notice) {
  switch (notice.type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      if (observer_ != nullptr) observer_->on_request(std::move(notice));
      return;
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (state_ != State::resolving) return;  // it was given up
      state_ = State::resolved;
      tell({.type = CmEventType::addr_resolved});
      if (wanted_) go_on();
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (state_ != State::resolved) return;  // the same
      state_ = State::routed;
      if (std::exchange(route_asked_, false)) tell({.type = CmEventType::route_resolved});
      if (wanted_) begin_connect();
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      return establish(std::move(notice));
    case RDMA_CM_EVENT_DISCONNECTED:
      return end({}, state_ != State::closing);
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      tell({.type = CmEventType::device_removal});
      return end(Errc::device_gone, false);
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      private_data_ = notice.private_data;
      return fail(notice);
    default:
      return;
  }
}

void Connection::fail(const CmNotice& notice) {
  const std::error_code status = system_error(notice.error != 0 ? notice.error : ECONNRESET);
  switch (notice.type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return fail(CmEventType::addr_error, status, "The peer's address cannot be reached");
    case RDMA_CM_EVENT_REJECTED:
      if (notice.error == ECONNREFUSED)
        return fail(CmEventType::rejected, status, "Nobody listens there");
      return fail(CmEventType::rejected, Errc::rejected, "The peer rejected the connection");
    case RDMA_CM_EVENT_UNREACHABLE:
      return fail(CmEventType::unreachable, Errc::timed_out, "The peer did not answer in time");
    default:
      return fail(CmEventType::connect_error, status, "The connection failed: " + status.message());
  }
}

/// It does not come to a connection. True where the device was asked for one.
bool Connection::give_up(Failure failure) {
  const bool tried = state_ == State::connecting || state_ == State::accepting;
  state_ = State::over;
  deadline_ = Time::max();
  failure_ = std::move(failure);
  if (const std::shared_ptr<QueuePair> queue_pair = live_queue_pair()) queue_pair->detach(tried);
  return tried;
}

void Connection::fail(CmEventType type, std::error_code status, const std::string& message) {
  if (state_ == State::over) return;
  give_up({.type = type, .status = status, .message = message});
  tell({.type = type, .status = status, .message = message, .private_data = private_data_});
}

void Connection::throw_failure() const {
  if (failure_->status == make_error_code(Errc::rejected))
    throw RejectedError(failure_->message, private_data_);
  throw Error(failure_->status, failure_->message);
}

void Connection::establish(CmNotice notice) {
  const bool initiator = state_ == State::connecting;
  if (!initiator && state_ != State::accepting) return;  // it was given up
  state_ = State::established;
  deadline_ = Time::max();
  // Over iWARP the kernel names them from the connection's side, not from the peer's.
  ird_ = notice.initiator_depth;
  ord_ = notice.responder_resources;
  private_data_ = std::move(notice.private_data);
  if (const std::shared_ptr<QueuePair> queue_pair = live_queue_pair()) queue_pair->established();
  tell({.type = CmEventType::established,
        .private_data = initiator ? private_data_ : std::vector<std::byte>(),
        .ord = ord_,
        .ird = ird_});
  if (close_asked_) begin_close(*close_asked_);
}

/// `by_peer`: nothing here asked for it.
void Connection::end(std::error_code status, bool by_peer) {
  if (state_ == State::over) return;
  if (state_ != State::established && state_ != State::closing) {
    const std::error_code why = status ? status : make_error_code(Errc::connection_lost);
    const bool tried = give_up({.type = CmEventType::connect_error,
                                .status = why,
                                .message = "The connection was given up before it was there"});
    if (tried || wanted_) tell({.type = CmEventType::connect_error, .status = why});
    return;
  }
  state_ = State::over;
  deadline_ = Time::max();
  if (const std::shared_ptr<QueuePair> queue_pair = live_queue_pair())
    queue_pair->ended(by_peer && !status);
  tell({.type = CmEventType::disconnected, .status = status});
}

void Connection::lose(std::error_code status) { end(status, false); }

void Connection::abandon() {
  observer_ = nullptr;
  state_ = State::over;
  deadline_ = Time::max();
}

void Connection::tell(CmEventInfo info) {
  if (info.status && info.message.empty()) info.message = info.status.message();
  if (observer_ != nullptr) observer_->on_connection(std::move(info));
}

// --- The end.

void Connection::begin_close(Duration timeout) {
  if (state_ == State::accepting) close_asked_ = timeout;
  if (state_ != State::established) return;
  state_ = State::closing;
  if (const std::shared_ptr<QueuePair> queue_pair = live_queue_pair()) queue_pair->closing();
  close_by_ = deadline_after(SteadyClock::instance().now(), timeout);
  set_deadline(SteadyClock::instance().now());
  go_on_closing();
}

void Connection::go_on_closing() {
  const std::shared_ptr<QueuePair> queue_pair = live_queue_pair();
  const Time now = SteadyClock::instance().now();
  if (now >= close_by_) return end(Errc::timed_out, false);
  if (disconnect_sent_) return;
  if (queue_pair && !queue_pair->sends_idle()) {
    deadline_ = std::min(now + kCloseStep, close_by_);
    return;
  }
  disconnect_sent_ = true;
  deadline_ = close_by_;
  const SigpipeGuard guard;
  if (device_->cm().disconnect(id()) != 0) end(system_error(errno), false);
}

void Connection::on_deadline() {
  if (state_ == State::closing) return go_on_closing();
  endpoint_.reset();  // a late answer finds nobody
  fail(CmEventType::unreachable, Errc::timed_out, "The peer did not answer in time");
}

}  // namespace diwarp::bridge
