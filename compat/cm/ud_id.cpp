// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/ud_id.h"

#include <cerrno>
#include <utility>

#include "compat/cm/hub.h"
#include "compat/cm/id.h"
#include "compat/cm/ud_events.h"
#include "compat/cm/ud_service.h"
#include "compat/common/addresses.h"
#include "compat/verbs/for_cm.h"

namespace diwarp::compat {
namespace {

constexpr uint32_t kMostQueuePairs = 0xffffff;

std::vector<std::byte> checked(std::vector<std::byte> private_data) {
  refuse_if(private_data.size() > kMaxUdPrivateData, EINVAL);
  return private_data;
}

}  // namespace

UdId::UdId(Id& id) : id_(id), number_(Hub::of_process().new_number()) {}

UdId::~UdId() { Hub::of_process().remove(number_); }

/// From then on the id may have events.
void UdId::know_device(ibv_device* device) {
  device_ = device;
  id_.set_device(device);
  Hub::of_process().add(number_, id_, device);
}

void UdId::post(rdma_cm_event_type type, int status) {
  Hub::of_process().post(number_, plain_event(type, status));
}

/// As in the kernel, an id on a loopback or wildcard address has no device before it is resolved.
void UdId::bind(const Address& local) {
  refuse_if(bound_ || device_ != nullptr, EINVAL);
  ibv_device* const device = shared::device_for(local);
  port_.emplace(local);
  bound_ = true;
  local_ = port_->address();
  if (!is_unspecific(local)) know_device(device);
  id_.set_source(local_);
}

Address UdId::source_of(const Address& peer) const {
  const bool fixed = port_ && !local_.is_any() && local_.family() == peer.family();
  return fixed ? local_ : source_towards(peer).with_port(local_.port());
}

/// The service may be a group: then there is nothing to connect to, and the program joins it.
void UdId::resolve_addr(const sockaddr* source, const sockaddr* destination) {
  const Address named = address_of(destination);
  const Address peer = named.is_any() ? Address::loopback(named.family(), named.port()) : named;
  refuse_if(!listening_.empty() || request_ || service_, EINVAL);
  if (!bound_) bind(source != nullptr ? address_of(source) : Address::any(peer.family()));
  const Address from = source_of(peer);
  if (device_ == nullptr) know_device(shared::device_for(from));
  id_.set_source(from);
  id_.set_destination(peer);
  service_ = peer;
  post(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

void UdId::resolve_route() {
  refuse_if(!service_ || routed_, EINVAL);
  routed_ = true;
  post(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

void UdId::connect(const rdma_conn_param* parameters) {
  refuse_if(!routed_ || asked_ || service_->port() == 0 || service_->is_multicast(), EINVAL);
  const std::vector<std::byte> data = checked(id_.private_data_of(parameters));
  UdService::of(device_).ask(number_, *service_, data);
  asked_ = true;
}

void UdId::listen_on(UdpPort port) {
  ibv_device* const device = shared::device_for(port.address());
  Hub::of_process().add(number_, id_, device);
  UdService::of(device).listen(number_, std::move(port));
  listening_.push_back(device);
}

/// A listener on `::` takes IPv4, too, as one of RDMA_PS_TCP does.
void UdId::listen() {
  refuse_if(!listening_.empty() || service_, EINVAL);
  if (!port_) bind(Address::any(AddressFamily::ipv4));
  const bool both = local_.is_any() && local_.family() == AddressFamily::ipv6 && !id_.ipv6_only;
  if (both) listen_on(UdpPort(Address::any(AddressFamily::ipv4, local_.port())));
  listen_on(std::move(*port_));
  port_.reset();
}

void UdId::accept(const rdma_conn_param* parameters) {
  refuse_if(!request_ || (id_.qp == nullptr && parameters == nullptr), EINVAL);
  UdAnswerMessage answer{.status = UdStatus::accepted,
                         .q_key = RDMA_UDP_QKEY,
                         .private_data = checked(id_.private_data_of(parameters))};
  answer.queue_pair = id_.qp != nullptr ? shared::number(id_.qp) : parameters->qp_num;
  refuse_if(answer.queue_pair == 0 || answer.queue_pair > kMostQueuePairs, EINVAL);
  request_->answer(std::move(answer));
}

void UdId::reject(std::span<const std::byte> private_data) {
  refuse_if(!request_, EINVAL);
  request_->answer({.status = UdStatus::rejected,
                    .private_data = checked({private_data.begin(), private_data.end()})});
}

void UdId::join(const Address& group, void* program_context, bool receives) {
  refuse_if(device_ == nullptr || group.family() != local_.family(), EINVAL);
  const Address any_port = group.with_port(0);
  groups_.join(id_, any_port, local_.is_any() ? "" : interface_of(local_), receives);
  Hub::of_process().post(number_, group_event(any_port, program_context, RDMA_UDP_QKEY));
}

void UdId::leave(const Address& group) { groups_.leave(id_, group.with_port(0)); }

void UdId::end() {
  Hub::of_process().remove(number_);
  groups_.leave_all(id_);
  if (service_) UdService::of(device_).cancel(number_);
  for (ibv_device* device : std::exchange(listening_, {}))
    UdService::of(device).stop_listening(number_);
  request_.reset();
}

void UdId::take_request(UdRequest request, const UdId& listener, ibv_device* device) {
  local_ = listener.local_;
  const Address requester = request.requester();
  const Address reached = local_.is_any() ? source_towards(requester) : local_;
  know_device(device);
  id_.set_source(reached.with_port(local_.port()));
  id_.set_destination(requester);
  request_.emplace(std::move(request));
}

int UdId::fill_attributes(ibv_qp_attr& attributes) const {
  if (attributes.qp_state == IBV_QPS_RTR) return IBV_QP_STATE;
  if (attributes.qp_state == IBV_QPS_RTS) return IBV_QP_STATE | IBV_QP_SQ_PSN;
  attributes.port_num = 1;
  attributes.qkey = RDMA_UDP_QKEY;
  return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
}

}  // namespace diwarp::compat
