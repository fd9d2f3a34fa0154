// SPDX-License-Identifier: Apache-2.0
#include "diwarp/connection_manager.h"

#include <utility>

#include "provider/cm_channel.h"
#include "provider/cm_id.h"
#include "provider/device.h"
#include "provider/queue_pair.h"
#include "verbs/handle_access.h"

namespace diwarp {

CmEventChannel::CmEventChannel() : impl_(std::make_shared<provider::CmEventChannel>()) {}

std::optional<CmEvent> CmEventChannel::get_event(Duration timeout) {
  std::optional<provider::CmChannel::Event> told = impl_->channel()->get_event(timeout);
  if (!told) return std::nullopt;
  CmEvent event;
  static_cast<CmEventInfo&>(event) = std::move(told->info);
  if (told->request) event.request = handle_of<CmId>(std::move(told->request));
  return event;
}

int CmEventChannel::descriptor() const { return impl_->channel()->descriptor(); }

CmId::CmId(const Device& device, const CmEventChannel& channel, uint64_t context)
    : impl_(impl_of(device)->make_cm_id(impl_of(channel)->channel(), context)) {}

CmId::CmId(std::shared_ptr<provider::CmId> impl) : impl_(std::move(impl)) {}

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
void CmId::migrate(const CmEventChannel& channel) { impl_->migrate(impl_of(channel)->channel()); }

uint64_t CmId::number() const { return impl_->number(); }
uint64_t CmId::context() const { return impl_->context(); }
void CmId::set_context(uint64_t context) { impl_->set_context(context); }
Address CmId::local_address() const { return impl_->local_address(); }
Address CmId::peer_address() const { return impl_->peer_address(); }

}  // namespace diwarp
