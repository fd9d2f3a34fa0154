// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/id.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "compat/cm/contexts.h"
#include "compat/cm/event_calls.h"
#include "compat/cm/hub.h"
#include "compat/cm/ud_id.h"
#include "compat/common/addresses.h"
#include "compat/common/boundary.h"
#include "compat/common/live_objects.h"
#include "compat/verbs/for_cm.h"

namespace diwarp::compat {
namespace {

constexpr size_t kMostRequests = 1024;
/// Where nobody listens. Programs of the kernel's verbs are used to listeners that begin in
/// microseconds: perftest listens after it has told its peer to connect.
constexpr Duration kRetryRefused = std::chrono::milliseconds(300);
constexpr __be16 kDefaultPkey = 0xffff;

void write_gid(const Address& address, ibv_gid& gid) {
  const auto bytes = gid_bytes(address);
  std::copy(bytes.begin(), bytes.end(), gid.raw);
}

/// Stands for a port where an address is resolved without one, as librpma does to find a device:
/// the library asks for one. Nothing is sent to it.
constexpr uint16_t kNoPort = 1;

/// "All addresses" as a destination is this host, as in the kernel.
Address reachable(const Address& address) {
  return address.is_any() ? Address::loopback(address.family(), address.port()) : address;
}

}  // namespace

Id::Id(std::shared_ptr<EventChannel> on, void* program_context, rdma_port_space space)
    : rdma_cm_id{}, its_channel(std::move(on)), synchronous_(its_channel == nullptr) {
  if (synchronous_) its_channel = EventChannel::make();
  channel = its_channel.get();
  context = program_context;
  ps = space;
  qp_type = space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
  if (space == RDMA_PS_UDP) datagram_ = std::make_unique<UdId>(*this);
}

Id::Id(const Id& listener, diwarp::CmId request, ibv_device* device, const rdma_cm_event& told)
    : Id(listener.synchronous_ ? nullptr : Hub::of_process().channel_of(listener), listener.context,
         listener.ps) {
  requested_ = {told.param.conn.initiator_depth, told.param.conn.responder_resources};
  bound_ = true;
  set_device(device);
  set_source(request.local_address());
  set_destination(request.peer_address());
  engine_ids_.push_back(std::move(request));
  Hub::of_process().add(engine_ids_.front().number(), *this, device);
}

Id::Id(const Id& listener, UdRequest request, ibv_device* device)
    : Id(listener.synchronous_ ? nullptr : Hub::of_process().channel_of(listener), listener.context,
         listener.ps) {
  datagram_->take_request(std::move(request), *listener.datagram_, device);
}

/// A program may have destroyed a synchronous id's channel, though that is the library's.
Id::~Id() {
  if (synchronous_) EventChannel::release(its_channel.get());
}

Id& id_of(rdma_cm_id* id) {
  refuse_if(id == nullptr, EINVAL);
  Id& named = *static_cast<Id*>(id);
  LiveObjects<Id>::check(&named);
  named.process.check();
  return named;
}

Id* taken_id(rdma_cm_id* id) {
  refuse_if(id == nullptr, EINVAL);
  auto* const given = static_cast<Id*>(id);
  LiveObjects<Id>::take(given);
  return given->process.is_own() ? given : nullptr;
}

// --- Fields that programs read.

void Id::set_device(ibv_device* device) {
  const SharedContext shared = shared_context(device);
  verbs = shared.context;
  if (pd == nullptr) pd = shared.pd;
  port_num = 1;
  route.addr.addr.ibaddr.pkey = kDefaultPkey;
}

void Id::set_source(const Address& address) {
  write_sockaddr(address, route.addr.src_storage);
  write_gid(address, route.addr.addr.ibaddr.sgid);
}

void Id::set_destination(const Address& address) {
  write_sockaddr(address, route.addr.dst_storage);
  write_gid(address, route.addr.addr.ibaddr.dgid);
}

void Id::note_addresses() {
  const std::lock_guard lock(engine_mutex_);
  if (engine_ids_.empty()) return;
  set_source(engine_ids_.front().local_address());
  set_destination(engine_ids_.front().peer_address());
}

// --- The library's id.

diwarp::CmId& Id::engine_id() {
  refuse_if(engine_ids_.empty(), EINVAL);
  return engine_ids_.front();
}

diwarp::CmId& Id::make_engine_id(ibv_device* device) {
  Hub& hub = Hub::of_process();
  diwarp::CmId made(shared::engine_device(device), hub.channel());
  hub.add(made.number(), *this, device);
  const std::lock_guard lock(engine_mutex_);
  engine_ids_.push_back(std::move(made));
  return engine_ids_.back();
}

/// Their destruction waits for the library's threads, which must not wait for a lock.
void Id::drop_engine_ids() {
  std::vector<diwarp::CmId> dropped;
  {
    const std::lock_guard lock(engine_mutex_);
    dropped.swap(engine_ids_);
  }
  for (const diwarp::CmId& one : dropped) Hub::of_process().remove(one.number());
}

void Id::end() {
  its_channel->pace.begun(this);
  if (datagram_) datagram_->end();
  drop_engine_ids();
  // Requests that nobody fetched are rejected when these events go.
  const auto unfetched = its_channel->events.purge(
      [this](const PendingCmEvent& waiting) { return waiting.about == this; });
  acknowledge_kept_event();
  acknowledgements.wait_for_all();
}

// --- Steps.

void Id::bind(const Address& local) {
  if (datagram_) return datagram_->bind(local);
  refuse_if(bound_, EINVAL);
  // As in the kernel, an id on a loopback or wildcard address has no device before it is resolved.
  ibv_device* const device = shared::device_for(local);
  // The device and the threads of connections take some milliseconds to begin. Programs tell their
  // peers the port after the bind, and listen next: the peer must not come before that.
  static_cast<void>(diwarp::CmId(shared::engine_device(device), Hub::of_process().channel()));
  reservation_.emplace(local, ipv6_only);
  asked_ = local;
  local_ = reservation_->address();
  if (!is_unspecific(local)) set_device(device);
  set_source(local_);
  bound_ = true;
}

/// From a loopback address no way leads to others: there the system chooses.
bool Id::chooses_source_to(const Address& peer) const {
  return bound_ && !asked_.is_any() && asked_.family() == peer.family() &&
         (!asked_.is_loopback() || peer.is_loopback());
}

void Id::resolve_addr(const sockaddr* source, const sockaddr* destination) {
  if (datagram_) return datagram_->resolve_addr(source, destination);
  const Address peer = reachable(address_of(destination));
  refuse_if(!engine_ids_.empty(), EINVAL);
  if (source != nullptr && !bound_) bind(address_of(source));
  ibv_device* const device = bound_ && !is_unspecific(local_) && local_.family() == peer.family()
                                 ? shared::device_for(local_)
                                 : shared::device_for(Address::any(peer.family()));
  set_device(device);
  set_destination(peer);
  try {
    diwarp::CmId& made = make_engine_id(device);
    if (chooses_source_to(peer)) made.bind(asked_);
    made.resolve_addr(peer.port() != 0 ? peer : peer.with_port(kNoPort));
    if (!bound_ || local_.is_any()) set_source(made.local_address());
    bound_ = true;
  } catch (...) {
    drop_engine_ids();
    throw;
  }
}

void Id::resolve_route() {
  if (datagram_) return datagram_->resolve_route();
  engine_id().resolve_route();
}

diwarp::QueuePair& Id::queue_pair_for(const rdma_conn_param* parameters) const {
  if (qp != nullptr) return shared::queue_pair(qp);
  refuse_if(parameters == nullptr || verbs == nullptr, EINVAL);
  ibv_qp* const found = shared::find_queue_pair(verbs->device, parameters->qp_num);
  refuse_if(found == nullptr, EINVAL);
  return shared::queue_pair(found);
}

std::vector<std::byte> Id::private_data_of(const rdma_conn_param* parameters) const {
  std::vector<std::byte> data = connect_data;
  if (parameters == nullptr || parameters->private_data == nullptr) return data;
  const auto* const first = static_cast<const std::byte*>(parameters->private_data);
  data.insert(data.end(), first, first + parameters->private_data_len);
  return data;
}

void Id::connect(const rdma_conn_param* parameters) {
  if (datagram_) return datagram_->connect(parameters);
  refuse_if(rdma_get_dst_port(this) == 0, EINVAL);
  diwarp::QueuePair& taker = queue_pair_for(parameters);
  const Depths depths = depths_of(parameters, {});
  const std::vector<std::byte> data = private_data_of(parameters);
  connecting_ = qp != nullptr ? qp->qp_num : parameters->qp_num;
  engine_id().connect(taker, {.private_data = std::span<const std::byte>(data),
                              .retry_refused = kRetryRefused,
                              .crc = wants_crc(address_of(&route.addr.dst_addr)),
                              .ord = depths.initiator,
                              .ird = depths.responder});
}

void Id::check_connected() const {
  refuse_if(connecting_ == 0 || verbs == nullptr, EINVAL);
  ibv_qp* const found = shared::find_queue_pair(verbs->device, connecting_);
  refuse_if(found == nullptr || shared::queue_pair(found).state() != QpState::rts, EINVAL);
}

void Id::accept(const rdma_conn_param* parameters) {
  its_channel->pace.begun(this);
  if (datagram_) return datagram_->accept(parameters);
  diwarp::QueuePair& taker = queue_pair_for(parameters);
  const Depths depths = depths_of(parameters, requested_);
  const std::vector<std::byte> data = private_data_of(parameters);
  engine_id().accept(taker, {.private_data = std::span<const std::byte>(data),
                             .crc = wants_crc(address_of(&route.addr.dst_addr)),
                             .ord = depths.initiator,
                             .ird = depths.responder});
}

void Id::reject(std::span<const std::byte> private_data) {
  its_channel->pace.begun(this);
  if (datagram_) return datagram_->reject(private_data);
  engine_id().reject(private_data);
}

void Id::disconnect() {
  refuse_if(datagram_ != nullptr, EINVAL);  // there is no connection
  engine_id().disconnect();
}

Address Id::listen_on(const Address& local, int backlog) {
  diwarp::CmId& made = make_engine_id(shared::device_for(local));
  made.bind(local);
  made.listen({.backlog = backlog > 0 ? backlog : ListenOptions{}.backlog,
               .ipv6_only = true,
               .max_requests = kMostRequests});
  return made.local_address();
}

void Id::listen(int backlog) {
  if (datagram_) return datagram_->listen();
  refuse_if(!engine_ids_.empty(), EINVAL);
  if (!bound_) bind(Address::any(AddressFamily::ipv4));
  try {
    const Address first = listen_on(local_, backlog);
    set_source(first);
    const bool both = local_.is_any() && local_.family() == AddressFamily::ipv6 && !ipv6_only;
    if (both) listen_on(Address::any(AddressFamily::ipv4, first.port()), backlog);
  } catch (...) {
    drop_engine_ids();
    throw;
  }
  reservation_.reset();
}

// --- Synchronous ids, and channels.

/// The program may have acknowledged it by itself.
void Id::acknowledge_kept_event() {
  if (event != nullptr) quietly([this] { acknowledge_event(std::exchange(event, nullptr)); });
}

void Id::complete() {
  if (!synchronous_) return;
  acknowledge_kept_event();
  event = fetch_event(*its_channel);
  if (event->status == 0) return;
  const bool rejected = event->event == RDMA_CM_EVENT_REJECTED;
  throw Refusal(rejected ? ECONNREFUSED : std::abs(event->status));
}

void Id::migrate(rdma_event_channel* to) {
  const std::shared_ptr<EventChannel> next =
      to != nullptr ? EventChannel::shared(to) : EventChannel::make();
  rdma_event_channel* const own = synchronous_ ? its_channel.get() : nullptr;
  its_channel->pace.begun(this);
  acknowledge_kept_event();
  Hub::of_process().move(*this, next);
  acknowledgements.wait_for_all();
  synchronous_ = to == nullptr;
  if (own != nullptr) EventChannel::release(own);
}

}  // namespace diwarp::compat
