// SPDX-License-Identifier: Apache-2.0
// The functions of libibverbs about devices and contexts.
#include <cstdlib>
#include <cstring>

#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/common/log.h"
#include "compat/verbs/context.h"

using namespace diwarp::compat;  // NOLINT: the whole file is the outer face

namespace {

ibv_device** new_list(const std::vector<Device*>& devices) {
  auto* const list =
      static_cast<ibv_device**>(std::calloc(devices.size() + 1, sizeof(ibv_device*)));
  refuse_if(list == nullptr, ENOMEM);
  std::copy(devices.begin(), devices.end(), list);
  return list;
}

}  // namespace

extern "C" {

DIWARP_COMPAT_EXPORT ibv_device** ibv_get_device_list(int* count) {
  return or_null([&] {
    const std::vector<Device*> devices = listed_devices();
    ibv_device** const list = new_list(devices);
    if (count != nullptr) *count = static_cast<int>(devices.size());
    return list;
  });
}

DIWARP_COMPAT_EXPORT void ibv_free_device_list(ibv_device** list) { std::free(list); }

DIWARP_COMPAT_EXPORT const char* ibv_get_device_name(ibv_device* device) { return device->name; }

DIWARP_COMPAT_EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  return device_of(device).guid();
}

DIWARP_COMPAT_EXPORT int ibv_get_device_index(ibv_device* device) {
  return device_of(device).index();
}

DIWARP_COMPAT_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  return or_null([&] {
    auto* const opened = new Context(device_of(device));
    LiveObjects<Context>::add(opened);
    return opened->handle();
  });
}

DIWARP_COMPAT_EXPORT int ibv_close_device(ibv_context* context) {
  return minus_one([&] {
    Context& opened = context_of(context);
    LiveObjects<Context>::take_unused(&opened);
    delete &opened;
  });
}

DIWARP_COMPAT_EXPORT int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return minus_one([&] { *event = context_of(context).async_events.take().event; });
}

}  // extern "C"
