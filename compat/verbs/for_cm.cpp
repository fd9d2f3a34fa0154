// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/for_cm.h"

#include "compat/common/live_objects.h"
#include "compat/verbs/device.h"
#include "compat/verbs/groups.h"
#include "compat/verbs/queue_pair.h"
#include "compat/verbs/ud_queue_pair.h"

namespace diwarp::compat::shared {
namespace {

/// Ids name queue pairs that the program may have destroyed by ibv_destroy_qp().
Qp& live_queue_pair(ibv_qp* qp) {
  Qp& named = qp_of(qp);
  LiveObjects<Qp>::check(&named);
  return named;
}

}  // namespace

ibv_device* device_for(const Address& address) { return &compat::device_for(address); }

std::vector<ibv_device*> listed_devices() {
  const std::vector<Device*> listed = compat::listed_devices();
  return {listed.begin(), listed.end()};
}

const diwarp::Device& engine_device(ibv_device* device) {
  return device_of(device).engine().device();
}

ibv_qp* create_queue_pair(ibv_context& context, ibv_qp_init_attr_ex& init,
                          const std::string& group_interface) {
  return compat::create_queue_pair(context, init, Meets::by_cm, group_interface);
}

diwarp::QueuePair& queue_pair(ibv_qp* qp) { return live_queue_pair(qp).queue_pair(); }

uint32_t number(ibv_qp* qp) { return live_queue_pair(qp).qp_base.qp_num; }

void join(ibv_qp* qp, const Address& group, const std::string& interface) {
  group_member(live_queue_pair(qp).handle())
      .queue_pair()
      .join(group.with_port(kGroupPort), interface);
}

void leave(ibv_qp* qp, const Address& group, const std::string& interface) {
  group_member(live_queue_pair(qp).handle())
      .queue_pair()
      .leave(group.with_port(kGroupPort), interface);
}

ibv_qp* find_queue_pair(ibv_device* device, uint32_t number) {
  Qp* const found = LiveObjects<Qp>::find([&](const Qp& qp) {
    return qp.qp_base.qp_num == number && qp.qp_base.context->device == device;
  });
  return found != nullptr ? found->handle() : nullptr;
}

}  // namespace diwarp::compat::shared
