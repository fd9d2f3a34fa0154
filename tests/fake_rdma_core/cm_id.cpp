// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/cm_id.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fake_rdma_core/context.h"
#include "fake_rdma_core/limits.h"
#include "fake_rdma_core/queue_pair.h"

namespace fake {
namespace {

CmChannel& channel_of(const rdma_cm_id& id) { return *static_cast<CmChannel*>(id.channel); }

diwarp::Address address_of(const sockaddr* address) {
  refuse_if(address == nullptr, EINVAL);
  return diwarp::Address::from_sockaddr(address);
}

std::span<const std::byte> private_data_of(const rdma_conn_param& parameters) {
  return {static_cast<const std::byte*>(parameters.private_data), parameters.private_data_len};
}

/// A depth that a program asks for: RDMA_MAX_RESP_RES and RDMA_MAX_INIT_DEPTH, which are the same,
/// stand for the most; more than the device has is refused.
uint16_t checked_depth(uint8_t asked) {
  static_assert(RDMA_MAX_RESP_RES == RDMA_MAX_INIT_DEPTH);
  if (asked == RDMA_MAX_RESP_RES) return kMaxRdAtomic;
  refuse_if(asked > kMaxRdAtomic, EINVAL);
  return asked;
}

/// Of connect() and accept().
template <class Options>
Options options_of(const rdma_conn_param& parameters) {
  Options options;
  options.private_data = private_data_of(parameters);
  options.ord = checked_depth(parameters.initiator_depth);
  options.ird = checked_depth(parameters.responder_resources);
  return options;
}

}  // namespace

CmId::CmId(CmChannel& its_channel, void* its_context, rdma_port_space space)
    : rdma_cm_id{}, serial_(next_serial()), use_(&its_channel.users) {
  channel = &its_channel;
  context = its_context;
  ps = space;
  most_.initiator_depth = most_.responder_resources = uint8_t{kMaxRdAtomic};
  qp_type = IBV_QPT_RC;
  its_channel.add(serial_, *this);
}

CmId::CmId(CmId& listener, CmRecord&& record)
    : CmId(channel_of(listener), listener.context, listener.ps) {
  state_ = State::requested;
  most_.initiator_depth = record.initiator_depth;
  most_.responder_resources = record.responder_resources;
  diwarp::CmId& request = *record.request;
  request.set_context(serial_);
  local_ = request.local_address();
  peer_ = request.peer_address();
  inners_.push_back(std::move(request));
  adapter_ = listener.adapter_ != nullptr ? listener.adapter_ : find_adapter(*local_);
  if (adapter_ != nullptr) verbs = &adapter_->cm_context().context;
  port_num = 1;
  show_addresses();
}

CmId::~CmId() {
  channel_of(*this).remove(serial_, *this);
  acknowledgements.wait();
  inners_.clear();  // events that were being fetched looked at them
}

void CmId::expect(State wanted) const { refuse_if(state_ != wanted, EINVAL); }

void CmId::bind(const sockaddr* local) {
  expect(State::idle);
  bind_to(address_of(local));
}

void CmId::bind_to(const diwarp::Address& local) {
  Adapter* const adapter = local.is_any() ? nullptr : find_adapter(local);
  refuse_if(adapter == nullptr && !local.is_any(), ENODEV);
  port_.emplace(local);
  local_ = local.with_port(port_->number());
  adapter_ = adapter;
  if (adapter != nullptr) {
    verbs = &adapter->cm_context().context;
    port_num = 1;
  }
  state_ = State::bound;
  show_addresses();
}

void CmId::resolve_addr(const sockaddr* source, const sockaddr* peer) {
  if (state_ == State::idle && source != nullptr) bind_to(address_of(source));
  if (state_ != State::bound) expect(State::idle);
  peer_ = address_of(peer);
  if (adapter_ == nullptr) adapter_ = adapter_towards(*peer_);
  state_ = State::resolving;
  if (adapter_ == nullptr || adapter_->gone) return fail_to_resolve();
  const Context& own = adapter_->cm_context();
  inners_.emplace_back(*own.device, channel_of(*this).inner, serial_);
  inners_.front().resolve_addr(*peer_);
}

void CmId::fail_to_resolve() {
  state_ = State::idle;
  channel_of(*this).records.push({.id = this, .type = RDMA_CM_EVENT_ADDR_ERROR, .status = -ENODEV});
}

void CmId::resolve_route() {
  expect(State::addr_resolved);
  state_ = State::route_resolving;
  inners_.front().resolve_route();
}

void CmId::connect(const rdma_conn_param* given) {
  expect(State::route_resolved);
  const rdma_conn_param& parameters = parameters_or_most(given);
  Qp& queue_pair = this->queue_pair(parameters);
  const auto options = options_of<diwarp::ConnectOptions>(parameters);
  state_ = State::connecting;
  qp_number_ = queue_pair.qp_num;
  try {
    inners_.front().connect(queue_pair.inner(), options);
  } catch (...) {
    state_ = State::route_resolved;
    throw;
  }
}

void CmId::listen(int backlog) {
  if (state_ == State::idle) bind_to(diwarp::Address::any(diwarp::AddressFamily::ipv4));
  expect(State::bound);
  state_ = State::listening;
  if (adapter_ != nullptr) return listen_on(*adapter_, backlog);
  for (Adapter* adapter : adapters())
    if (adapter->address.family() == local_->family()) listen_on(*adapter, backlog);
}

void CmId::listen_on(Adapter& adapter, int backlog) {
  const Context& own = adapter.cm_context();
  own.check_present();
  diwarp::CmId& inner = inners_.emplace_back(*own.device, channel_of(*this).inner, serial_);
  inner.bind(adapter.address.with_port(local_->port()));
  inner.listen({.backlog = backlog > 0 ? backlog : 128});
}

void CmId::accept(const rdma_conn_param* given) {
  expect(State::requested);
  const rdma_conn_param& parameters = parameters_or_most(given);
  Qp& queue_pair = this->queue_pair(parameters);
  const auto options = options_of<diwarp::AcceptOptions>(parameters);
  state_ = State::connecting;
  qp_number_ = queue_pair.qp_num;
  try {
    inners_.front().accept(queue_pair.inner(), options);
  } catch (...) {
    state_ = State::ended;  // the kernel has rejected it
    throw;
  }
}

void CmId::reject(std::span<const std::byte> private_data) {
  expect(State::requested);
  state_ = State::ended;
  inners_.front().reject(private_data);
}

/// Requests that are not done are flushed, as adapters do.
void CmId::disconnect() {
  const State state = state_;
  if (state == State::removed || state == State::ended) return;
  refuse_if(state != State::connected && state != State::connecting, EINVAL);
  Qp* const queue_pair = adapter_->queue_pair(qp_number_);
  if (queue_pair != nullptr && queue_pair->has_pending_sends())
    queue_pair->modify(IBV_QPS_ERR);
  else
    inners_.front().disconnect();
}

bool CmId::take_note(const CmRecord& record) {
  if (state_ == State::removed) return false;
  const bool everywhere = state_ == State::listening && adapter_ == nullptr;
  if (everywhere && record.type == RDMA_CM_EVENT_DEVICE_REMOVAL) return false;  // others remain
  if (state_ != State::listening || record.type == RDMA_CM_EVENT_DEVICE_REMOVAL)
    state_ = state_after(record.type, state_);
  return true;
}

CmId::State CmId::state_after(rdma_cm_event_type type, State before) {
  switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return State::addr_resolved;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return State::route_resolved;
    case RDMA_CM_EVENT_ESTABLISHED:
      return State::connected;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return State::removed;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
      return State::ended;
    default:
      return before;
  }
}

void CmId::deliver(rdma_cm_event_type type) {
  if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
    verbs = &adapter_->cm_context().context;
    port_num = 1;
  }
  if (type == RDMA_CM_EVENT_ADDR_RESOLVED || type == RDMA_CM_EVENT_ESTABLISHED) {
    local_ = inners_.front().local_address();
    show_addresses();
  }
}

void CmId::show_addresses() {
  if (local_) local_->to_sockaddr(route.addr.src_storage);
  if (peer_) peer_->to_sockaddr(route.addr.dst_storage);
}

const rdma_conn_param& CmId::parameters_or_most(const rdma_conn_param* parameters) const {
  refuse_if(parameters == nullptr && qp == nullptr, EINVAL);
  return parameters == nullptr ? most_ : *parameters;
}

Qp& CmId::queue_pair(const rdma_conn_param& parameters) {
  refuse_if(adapter_ == nullptr, EINVAL);
  refuse_if(adapter_->gone, ENODEV);
  if (qp != nullptr) return *static_cast<Qp*>(qp);
  Qp* const found = adapter_->queue_pair(parameters.qp_num);
  refuse_if(found == nullptr, EINVAL);
  return *found;
}

}  // namespace fake
