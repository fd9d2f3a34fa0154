// SPDX-License-Identifier: Apache-2.0
#include "bridge/queue_pair.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "bridge/connection.h"
#include "bridge/refuse.h"
#include "bridge/send_translation.h"
#include "bridge/shared_receive_queue.h"
#include "bridge/sigpipe_guard.h"
#include "provider/own.h"

namespace diwarp::bridge {
namespace {

/// Requests that go to the device together.
constexpr size_t kBatch = 16;

void check_range(const Device& device, const char* what, uint32_t value, uint32_t lowest,
                 uint32_t highest) {
  if (value >= lowest && value <= highest) return;
  refuse(Errc::invalid_argument, std::string(what) + " must be from " + std::to_string(lowest) +
                                     " to " + std::to_string(highest) + " on the device " +
                                     device.name() + ", not " + std::to_string(value));
}

void check(const Device& device, const QueuePairCapacity& capacity) {
  const auto deepest = static_cast<uint32_t>(device.limits().max_qp_wr);
  const auto most_sges = static_cast<uint32_t>(device.limits().max_sge);
  check_range(device, "max_send_wr", capacity.max_send_wr, 1, deepest);
  check_range(device, "max_recv_wr", capacity.max_recv_wr, 1, deepest);
  check_range(device, "max_send_sge", capacity.max_send_sge, 1, most_sges);
  check_range(device, "max_recv_sge", capacity.max_recv_sge, 1, most_sges);
  check_range(device, "max_inline_data", capacity.max_inline_data, 0,
              device.query().max_inline_data);
}

/// Rounded up to powers of two, as far as the device goes.
QueuePairCapacity rounded(const Device& device, QueuePairCapacity capacity) {
  const auto deepest = static_cast<uint32_t>(device.limits().max_qp_wr);
  capacity.max_send_wr = std::min(std::bit_ceil(capacity.max_send_wr), deepest);
  capacity.max_recv_wr = std::min(std::bit_ceil(capacity.max_recv_wr), deepest);
  return capacity;
}

/// What a device decides by itself is not asked for.
void check(const Device& device, const StreamOptions& options) {
  const StreamOptions defaults;
  if (options.receive_wait != defaults.receive_wait) device.refuse_unsupported("receive_wait");
  if (options.max_fpdu != defaults.max_fpdu) device.refuse_unsupported("a choice of max_fpdu");
  if (options.responder_begins) device.refuse_unsupported("responder_begins");
  if (options.keep_alive != defaults.keep_alive) device.refuse_unsupported("keep_alive");
  if (options.user_timeout != defaults.user_timeout) device.refuse_unsupported("user_timeout");
}

/// The queue, which must be one of this device's.
std::shared_ptr<CompletionQueue> own_queue(const std::shared_ptr<provider::CompletionQueue>& queue,
                                           const Device& device) {
  if (!queue)
    refuse(Errc::invalid_argument,
           "A queue pair needs a completion queue for its sends and one for its receives");
  auto own = provider::own_pointer<CompletionQueue>(queue, "completion queue");
  if (own->device().get() != &device) provider::refuse_foreign("completion queue");
  return own;
}

QueuePairParts parts_of(std::shared_ptr<ProtectionDomain> domain,
                        const provider::QueuePairInit& init) {
  QueuePairParts parts{
      .domain = std::move(domain),
      .send_cq = own_queue(init.send_cq, parts.domain->device()),
      .recv_cq = own_queue(init.recv_cq, parts.domain->device()),
      .srq = provider::own_pointer<SharedReceiveQueue>(init.srq, "shared receive queue")};
  if (parts.srq && &parts.srq->domain() != parts.domain.get()) provider::refuse_other_domain();
  return parts;
}

/// Whether a queue pair in this state begins nothing any more: what is posted now is flushed.
bool is_ending(QpState state) { return state == QpState::closing || state == QpState::error; }

/// What the table of a receive queue keeps of a receive.
void describe_receive(uint64_t wr_id, size_t sge_count, QueueTable::Request& entry) {
  entry.wr_id = wr_id;
  entry.opcode = WcOpcode::recv;
  entry.reported = true;
  entry.bytes = 0;
  entry.sge_count = static_cast<uint32_t>(sge_count);
}

/// A place in a completion queue, given back unless kept.
class Reservation {
 public:
  Reservation(CompletionQueue& queue, uint32_t places) : queue_(&queue), places_(places) {
    queue.reserve(places);
  }
  ~Reservation() {
    if (queue_ != nullptr) queue_->unreserve(places_);
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  void keep() { queue_ = nullptr; }

 private:
  CompletionQueue* queue_;
  uint32_t places_;
};

}  // namespace

QueuePair& own_queue_pair(provider::QueuePair& queue_pair, const Device& device) {
  auto& own = provider::own<QueuePair>(queue_pair, "queue pair");
  if (&own.device() != &device) provider::refuse_foreign("queue pair");
  return own;
}

std::shared_ptr<QueuePair> QueuePair::make(std::shared_ptr<ProtectionDomain> domain,
                                           const provider::QueuePairInit& init) {
  const Device& device = domain->device();
  if (init.type != QpType::rc)
    device.refuse_unsupported("queue pairs of type " + std::string(to_string(init.type)));
  check(device, init.capacity);
  check(device, init.stream);
  if (init.number != 0) device.refuse_unsupported("a chosen number of a queue pair");
  std::shared_ptr<QueuePair> made(new QueuePair(parts_of(std::move(domain), init), init));
  made->device().async_events().add(made->queues_->get(), made);
  return made;
}

QueuePair::QueuePair(QueuePairParts parts, const provider::QueuePairInit& init)
    : parts_(std::move(parts)),
      capacity_(rounded(parts_.domain->device(), init.capacity)),
      signal_all_(init.signal_all),
      guards_sends_(device().traits().raises_sigpipe && !ignores_sigpipe()),
      reserved_sends_(capacity_.max_send_wr),
      reserved_receives_(parts_.srq ? 0 : capacity_.max_recv_wr),
      send_requests_(kBatch),
      send_sges_(kBatch * capacity_.max_send_sge),
      receive_sges_(
          parts_.srq ? 0 : QueueTable::places(capacity_.max_recv_wr) * capacity_.max_recv_sge) {
  Reservation sends(*parts_.send_cq, reserved_sends_);
  Reservation receives(*parts_.recv_cq, reserved_receives_);
  queues_ = std::make_unique<DeviceQueues>(parts_, capacity_);
  number_ = queues_->number();
  sends.keep();
  receives.keep();
  ++device().queue_pairs();
}

QueuePair::~QueuePair() {
  device().async_events().remove(queues_->get());
  std::shared_ptr<Connection> connection;
  {
    const ControlLock lock(device());
    connection = std::move(connection_);
    if (connection) connection->lose({});
  }
  connection.reset();
  queues_.reset();
  parts_.send_cq->unreserve(reserved_sends_);
  parts_.recv_cq->unreserve(reserved_receives_);
  --device().queue_pairs();
}

// --- Posting.

std::error_code QueuePair::post_sends(std::span<const SendWorkRequest> requests,
                                      size_t& posted) noexcept {
  posted = 0;
  const std::lock_guard lock(send_mutex_);
  if (is_ending(state())) {
    std::error_code error;
    while (posted < requests.size() && !(error = add_flushed(requests[posted]))) ++posted;
    parts_.send_cq->finish_completed(queues_->sends());
    return error;
  }
  while (posted < requests.size()) {
    const auto some = requests.subspan(posted, std::min(requests.size() - posted, kBatch));
    if (const std::error_code error = post_some(some, posted)) return error;
  }
  return {};
}

/// rdma-core posts a list up to the first that it refuses.
std::error_code QueuePair::post_all_sends(std::span<const SendWorkRequest>) noexcept {
  return Errc::unsupported_operation;
}

/// One that is posted in error, or while the connection ends.
std::error_code QueuePair::add_flushed(const SendWorkRequest& request) noexcept {
  if (const std::error_code error = check_send(request, capacity_, *parts_.domain)) return error;
  if (!has_place()) return Errc::queue_full;
  QueueTable& table = queues_->sends();
  describe(request, true, table.next());
  if (request.opcode == WrOpcode::bind_window) {
    table.next().binding_number = parts_.domain->add_binding(request.binding);
    if (table.next().binding_number == 0) return Errc::queue_full;
  }
  table.add_flushed();
  return {};
}

/// True if the send queue has a place; those of requests that nobody is told of become free here.
bool QueuePair::has_place() {
  if (!queues_->sends().full()) return true;
  parts_.send_cq->reap();
  return !queues_->sends().full();
}

/// Puts a request into the table, and into the batch at `index`. One that binds takes `bindable`
/// and must be the batch's last: has_place() reaps completions, which may end regions.
std::error_code QueuePair::prepare(const SendWorkRequest& request, size_t index,
                                   std::unique_lock<std::mutex>& bindable) noexcept {
  if (const std::error_code error = check_send(request, capacity_, *parts_.domain)) return error;
  if (state() != QpState::rts) return Errc::invalid_state;
  if (!has_place()) return Errc::queue_full;
  ibv_send_wr& out = send_requests_[index];
  const std::span sges =
      std::span(send_sges_).subspan(index * capacity_.max_send_sge, capacity_.max_send_sge);
  const bool binds = request.opcode == WrOpcode::bind_window;
  if (binds) {
    if (!parts_.domain->has_binding_left(request.binding.stag)) parts_.send_cq->reap();
    bindable = parts_.domain->keep_bindable();
  }
  if (!translate(request, *parts_.domain, out, sges)) return Errc::invalid_argument;
  QueueTable& table = queues_->sends();
  describe(request, signal_all_, table.next());
  if (binds) {
    table.next().binding_number = parts_.domain->add_binding(request.binding);
    if (table.next().binding_number == 0) return Errc::queue_full;
  }
  out.wr_id = table.wr_id(table.add());
  if (index != 0) send_requests_[index - 1].next = &out;
  return {};
}

/// Returns an errno, and the request that was refused.
int QueuePair::send_batch(ibv_send_wr** bad) noexcept {
  const SigpipeGuard guard(guards_sends_);
  return errno_of(ibv_post_send(queues_->get(), send_requests_.data(), bad));
}

/// One batch. Adds to `posted`.
std::error_code QueuePair::post_some(std::span<const SendWorkRequest> requests,
                                     size_t& posted) noexcept {
  std::error_code error;
  size_t count = 0;
  std::unique_lock<std::mutex> bindable;
  while (count < requests.size() && !bindable &&
         !(error = prepare(requests[count], count, bindable)))
    ++count;
  if (count == 0) return error;
  ibv_send_wr* bad = nullptr;
  const int refused = send_batch(&bad);
  if (refused == 0) {
    posted += count;
    return error;
  }
  const size_t taken =
      bad != nullptr ? static_cast<size_t>(bad - send_requests_.data()) : size_t{0};
  queues_->sends().take_back(static_cast<uint32_t>(count - taken));
  posted += taken;
  if (refused == ENOMEM) return Errc::queue_full;
  // No attribute tells whether a device has immediate data.
  const bool may_lack = requests[taken].opcode == WrOpcode::immediate;
  if (refused == EOPNOTSUPP || may_lack) return Errc::unsupported_operation;
  if (refused == EINVAL) return Errc::invalid_state;  // in error, of which no event has come yet
  return std::error_code(refused, std::system_category());
}

std::error_code QueuePair::post_recvs(std::span<const ReceiveWorkRequest> requests,
                                      size_t& posted) noexcept {
  posted = 0;
  if (parts_.srq) return Errc::unsupported_operation;
  const std::lock_guard lock(receive_mutex_);
  if (is_ending(state())) {
    std::error_code error;
    while (posted < requests.size() && !(error = add_flushed(requests[posted]))) ++posted;
    parts_.recv_cq->finish_completed(queues_->receives());
    return error;
  }
  for (const ReceiveWorkRequest& request : requests) {
    if (const auto error = check_receive(request, capacity_.max_recv_sge)) return error;
    if (state() == QpState::reset) return Errc::invalid_state;
    if (queues_->receives().full()) return Errc::queue_full;
    QueueTable& table = queues_->receives();
    const std::span sges = receive_sges(table.next_place());
    const int count = translate(request.sges, *parts_.domain, sges);
    if (const auto error = post_recv(request.wr_id, sges.first(static_cast<size_t>(count))))
      return error;
    ++posted;
  }
  return {};
}

std::error_code QueuePair::add_flushed(const ReceiveWorkRequest& request) noexcept {
  if (const auto error = check_receive(request, capacity_.max_recv_sge)) return error;
  QueueTable& table = queues_->receives();
  if (table.full()) return Errc::queue_full;
  describe_receive(request.wr_id, 0, table.next());
  table.add_flushed();
  return {};
}

std::error_code QueuePair::post_recv(uint64_t wr_id, std::span<ibv_sge> sges) noexcept {
  QueueTable& table = queues_->receives();
  describe_receive(wr_id, sges.size(), table.next());
  ibv_recv_wr out{};
  out.sg_list = sges.data();
  out.num_sge = static_cast<int>(sges.size());
  out.wr_id = table.wr_id(table.add());
  ibv_recv_wr* bad = nullptr;
  const int error = errno_of(ibv_post_recv(queues_->get(), &out, &bad));
  if (error == 0) return {};
  table.take_back(1);
  if (error == ENOMEM) return Errc::queue_full;
  if (error == EINVAL) return Errc::invalid_state;  // as for sends
  return std::error_code(error, std::system_category());
}

/// Of the receive that has this place. Guarded by receive_mutex_.
std::span<ibv_sge> QueuePair::receive_sges(uint64_t place) {
  const size_t index = queues_->receives().index_of(place);
  return std::span(receive_sges_).subspan(index * capacity_.max_recv_sge, capacity_.max_recv_sge);
}

// --- States.

void QueuePair::set_state(QpState to) {
  // A post has seen the old state and is done, or will see the new.
  const std::scoped_lock locks(send_mutex_, receive_mutex_);
  state_ = to;
}

void QueuePair::set_remote_access(Access) { device().refuse_unsupported("set_remote_access()"); }

void QueuePair::modify(QpState to) {
  std::shared_ptr<Connection> connection;  // ends without the mutex
  const ControlLock lock(device());
  const QpState from = state();
  const bool allowed = to == QpState::error || (to == QpState::reset && from != QpState::closing) ||
                       (to == QpState::init && from == QpState::reset);
  if (to == QpState::sqd && from == QpState::rts) device().refuse_unsupported("the state sqd");
  if (!allowed)
    refuse(Errc::invalid_state, "A queue pair of type rc cannot be moved by hand from " +
                                    std::string(to_string(from)) + " to " +
                                    std::string(to_string(to)));
  if (from == to && to == QpState::error) return;
  if (to == QpState::init) return set_state(to);
  connection = connection_;
  if (connection) connection->lose({});
  if (to == QpState::error) return enter_error();
  reset();
}

void QueuePair::enter_error() {
  if (state() == QpState::error) return;
  set_state(QpState::error);
  queues_->receives().keep_flushed(false);
  queues_->enter_error();
  flush_at_ = SteadyClock::instance().now() + kFlushPatience;
  device().add_timed(weak_from_this());
  // Not every device tells.
  if (parts_.srq)
    device().async_events().raise(
        {.type = AsyncEventType::last_wqe_reached, .qp_number = number()});
}

void QueuePair::on_deadline() {
  flush_at_ = Time::max();
  if (!queues_->sends().idle() || !queues_->receives().idle()) queues_->flush();
}

/// Another queue pair of the device takes the place of this one, and what is posted goes.
void QueuePair::reset() {
  auto fresh = std::make_unique<DeviceQueues>(parts_, capacity_);
  const std::scoped_lock locks(send_mutex_, receive_mutex_);
  queues_->drop_completions();
  replace(fresh);
  state_ = QpState::reset;
  fatal_told_ = false;
  flush_at_ = Time::max();
}

/// The same after a connection that failed on its way, which some devices take as the queue pair's
/// end: posted receives stay.
void QueuePair::renew() {
  auto fresh = std::make_unique<DeviceQueues>(parts_, capacity_);
  std::vector<ibv_sge> before(receive_sges_.size());
  const std::scoped_lock locks(send_mutex_, receive_mutex_);
  replace(fresh);
  std::swap(before, receive_sges_);
  const QueueTable& old = fresh->receives();
  for (uint64_t place = old.first_unfinished(); place != old.next_place(); ++place) {
    const QueueTable::Request& request = old.at(place);
    const auto from = old.index_of(place) * capacity_.max_recv_sge;
    const std::span sges = receive_sges(queues_->receives().next_place()).first(request.sge_count);
    std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(from), sges.size(), sges.begin());
    if (post_recv(request.wr_id, sges))
      log::error("A receive of queue pair " + std::to_string(number()) + " was lost");
  }
}

/// With both post mutexes. Leaves the old one in `fresh`.
void QueuePair::replace(std::unique_ptr<DeviceQueues>& fresh) {
  device().async_events().remove(queues_->get());
  std::swap(queues_, fresh);
  number_ = queues_->number();
  device().async_events().add(queues_->get(), weak_from_this());
}

void QueuePair::on_async_event(ibv_event_type type, const void* object) {
  const bool gone = type == IBV_EVENT_DEVICE_FATAL;
  const bool failed =
      type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR || type == IBV_EVENT_QP_ACCESS_ERR;
  if (!gone && !failed) return;
  std::shared_ptr<Connection> connection;  // ends without the mutex
  const ControlLock lock(device());
  if (object != nullptr && object != queues_->get()) return;  // it was reset meanwhile
  const std::error_code status = gone ? Errc::device_gone : Errc::connection_lost;
  const bool told = std::exchange(fatal_told_, true);  // nothing below tells of another reason
  connection = connection_;
  enter_error();
  if (connection && (gone || connection->opening())) connection->lose(status);
  if (gone) queues_->flush();
  if (!told) tell_fatal(status);
}

// --- Connections.

void QueuePair::attach(const std::shared_ptr<Connection>& connection) {
  if (state() != QpState::init || connection_)
    refuse(Errc::invalid_state, "A queue pair is connected from the state init, once: it is in " +
                                    std::string(to_string(state())) +
                                    (connection_ ? ", and being connected" : ""));
  connection_ = connection;
}

void QueuePair::detach(bool tried) {
  connection_.reset();
  if (!tried || state() == QpState::error) return;
  try {
    renew();
  } catch (const std::exception& error) {
    log::error(std::string("A queue pair cannot be connected any more: ") + error.what());
    enter_error();
    tell_fatal(Errc::no_resources);
  }
}

void QueuePair::established() {
  if (state() == QpState::error) return;
  local_ = connection_->local_address();
  peer_ = connection_->peer_address();
  queues_->receives().keep_flushed(false);
  set_state(QpState::rts);
}

void QueuePair::closing() {
  if (state() != QpState::error) set_state(QpState::closing);
}

bool QueuePair::sends_idle() {
  parts_.send_cq->reap();
  return queues_->sends().idle();
}

void QueuePair::ended(bool peer_closed) {
  connection_.reset();
  enter_error();
  parts_.send_cq->reap();
  parts_.recv_cq->reap();
  const bool failed = queues_->sends().failed() || queues_->receives().failed();
  if (fatal_told_) return;
  if (failed) return tell_fatal(Errc::connection_lost);
  if (peer_closed)
    device().async_events().raise({.type = AsyncEventType::peer_closed, .qp_number = number()});
}

void QueuePair::tell_fatal(std::error_code status) {
  fatal_told_ = true;
  device().async_events().raise(
      {.type = AsyncEventType::qp_fatal, .qp_number = number(), .status = status});
}

std::vector<std::byte> QueuePair::connect(const Address& peer, const ConnectOptions& options) {
  check_options(device(), options);
  const Time deadline = deadline_after(SteadyClock::instance().now(), options.timeout);
  std::shared_ptr<Connection> connection;  // ends without the mutex
  ControlLock lock(device());
  if (state() != QpState::init)
    refuse(Errc::invalid_state,
           "connect() is for a queue pair in init, not in " + std::string(to_string(state())));
  connection = Connection::make(device());
  connection->resolve(device().address().with_port(0), peer, options.timeout);
  connection->connect(shared_from_this(), options);
  const bool settled = device().wait(lock, deadline, [&] { return !connection->connecting(); });
  if (!settled) {
    connection->abandon();
    detach(true);
    refuse(Errc::timed_out, peer.to_string() + " did not answer in time");
  }
  if (connection->failed()) connection->throw_failure();
  return connection->private_data();
}

void QueuePair::disconnect(const DisconnectOptions& options) {
  std::shared_ptr<Connection> connection;  // ends without the mutex
  ControlLock lock(device());
  connection = connection_;
  const QpState now = state();
  if (now == QpState::error) return;
  if (now != QpState::rts && now != QpState::closing)
    refuse(Errc::invalid_state, "disconnect() is for a connected queue pair, not for one in " +
                                    std::string(to_string(now)));
  connection->begin_close(options.timeout);
  device().wait(lock, Time::max(), [&] { return connection->state() == Connection::State::over; });
}

bool QueuePair::wait_disconnected(Duration timeout) {
  const Time deadline = deadline_after(SteadyClock::instance().now(), timeout);
  ControlLock lock(device());
  return device().wait(lock, deadline, [&] {
    const QpState now = state();
    return now != QpState::rts && now != QpState::closing;
  });
}

void QueuePair::modify_to_rtr(const StreamAttributes&) {
  device().refuse_unsupported("connections that other code has begun");
}

void QueuePair::await_peer(const NamedPeer&) {
  device().refuse_unsupported("queue pairs whose peers are named");
}

void QueuePair::limit_peer_wait(Duration) {
  device().refuse_unsupported("queue pairs whose peers are named");
}

std::vector<std::byte> QueuePair::connect_on(int, const ConnectOptions&) {
  device().refuse_unsupported("connect_on()");
}

std::vector<std::byte> QueuePair::accept_on(int, const AcceptOptions&, Duration) {
  device().refuse_unsupported("accept_on()");
}

// --- Attributes.

Address QueuePair::local_address() {
  const ControlLock lock(device());
  return local_;
}

QueuePairAttributes QueuePair::query() {
  QueuePairAttributes attributes;
  attributes.type = QpType::rc;
  attributes.capacity = capacity_;
  attributes.stream.receive_not_ready = ReceiveNotReady::terminate;
  attributes.stream.keep_alive = Duration::zero();
  attributes.stream.user_timeout = Duration::zero();
  const ControlLock lock(device());
  attributes.state = state();
  attributes.number = number();
  attributes.local_address = local_;
  attributes.peer_address = peer_;
  attributes.posted_sends = queues_->sends().posted();
  attributes.posted_receives = parts_.srq ? 0 : queues_->receives().posted();
  if (connection_) {
    attributes.ord = connection_->ord();
    attributes.ird = connection_->ird();
  }
  return attributes;
}

}  // namespace diwarp::bridge
