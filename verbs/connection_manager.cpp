// SPDX-License-Identifier: Apache-2.0
#include "diwarp/connection_manager.h"

#include <utility>

#include "rnic/cm/cm_channel.h"
#include "rnic/cm/cm_id.h"
#include "rnic/device.h"
#include "verbs/handle_access.h"

namespace diwarp {

CmEventChannel::CmEventChannel() : impl_(std::make_shared<rnic::CmEventChannel>()) {}

std::optional<CmEvent> CmEventChannel::get_event(Duration timeout) {
  std::optional<rnic::CmChannel::Record> record = impl_->channel()->get_event(timeout);
  if (!record) return std::nullopt;
  CmEvent event;
  static_cast<CmEventInfo&>(event) = std::move(record->info);
  if (record->request)
    if (std::shared_ptr<rnic::CmId> id = rnic::CmId::of_request(std::move(record->request)))
      event.request = handle_of<CmId>(std::move(id));
  return event;
}

int CmEventChannel::descriptor() const { return impl_->channel()->descriptor(); }

CmId::CmId(const Device& device, const CmEventChannel& channel, uint64_t context)
    : impl_(std::make_shared<rnic::CmId>(rnic::control_of(impl_of(device)),
                                         impl_of(channel)->channel(), context)) {}

CmId::CmId(std::shared_ptr<rnic::CmId> impl) : impl_(std::move(impl)) {}

void CmId::resolve_addr(const Address& peer) { impl_->resolve_addr(peer); }
void CmId::resolve_route() { impl_->resolve_route(); }
void CmId::bind(const Address& local) { impl_->bind(local); }
void CmId::listen(const ListenOptions& options) { impl_->listen(options); }

void CmId::connect(QueuePair& qp, const ConnectOptions& options) {
  impl_->connect(*impl_of(qp), options);
}

void CmId::accept(QueuePair& qp, const AcceptOptions& options) {
  impl_->accept(*impl_of(qp), options);
}

void CmId::reject(std::span<const std::byte> private_data) { impl_->reject(private_data); }
void CmId::disconnect(const DisconnectOptions& options) { impl_->disconnect(options); }

uint64_t CmId::number() const { return impl_->number(); }
uint64_t CmId::context() const { return impl_->context(); }
void CmId::set_context(uint64_t context) { impl_->set_context(context); }
Address CmId::local_address() const { return impl_->local_address(); }
Address CmId::peer_address() const { return impl_->peer_address(); }

}  // namespace diwarp
