// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/control.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "fake_rdma_core/capabilities.h"
#include "fake_rdma_core/context.h"
#include "fake_rdma_core/devices.h"
#include "fake_rdma_core/injection.h"
#include "fake_rdma_core/memory.h"
#include "fake_rdma_core/objects.h"
#include "fake_rdma_core/queue_pair.h"

namespace {

fake::Adapter& named(const char* device) {
  if (fake::Adapter* const found = fake::find_adapter(device)) return *found;
  std::fprintf(stderr, "fake rdma-core: there is no device %s\n", device);
  std::abort();
}

/// A copy: tests close no context meanwhile.
std::vector<fake::Context*> contexts_of(fake::Adapter& adapter) {
  const std::lock_guard lock(adapter.mutex);
  return adapter.contexts;
}

void push_to_contexts(fake::Adapter& adapter, ibv_event_type type) {
  for (fake::Context* context : contexts_of(adapter)) context->push_to_all(type);
}

void end_queue_pairs(fake::Adapter& adapter) {
  const std::lock_guard lock(adapter.mutex);
  for (const auto& [number, qp] : adapter.queue_pairs) {
    try {
      qp->modify(IBV_QPS_ERR);
    } catch (const std::exception&) {  // it is in error already
    }
  }
}

}  // namespace

extern "C" {

void fake_fail(const char* function, int after, int error) {
  fake::fail_call(function, after, error);
}

void fake_signal(const char* function, int signal) { fake::raise_in_calls(function, signal); }

int fake_calls(const char* function) { return fake::calls(function); }

void fake_clear(void) {
  fake::clear_calls();
  fake::clear_denials();
  fake::clear_fork();
  fake::clear_chosen_keys();
  fake::reload_adapters();
}

void fake_deny(const char* capability, int denied) { fake::deny(capability, denied != 0); }

void fake_choose_key(unsigned key) { fake::choose_key(key); }

void fake_raise(const char* device, int ibv_event_type) {
  fake::Adapter& adapter = named(device);
  const auto type = static_cast<enum ibv_event_type>(ibv_event_type);
  if (type == IBV_EVENT_PORT_ERR) adapter.port_up = false;
  if (type == IBV_EVENT_PORT_ACTIVE) adapter.port_up = true;
  push_to_contexts(adapter, type);
}

void fake_remove(const char* device) {
  fake::Adapter& adapter = named(device);
  adapter.gone = true;
  fake::remove_adapter(adapter);
  for (fake::Context* context : contexts_of(adapter)) {
    context->device->remove();
    break;  // all have the same device
  }
  push_to_contexts(adapter, IBV_EVENT_DEVICE_FATAL);
  end_queue_pairs(adapter);
  const std::lock_guard lock(adapter.mutex);  // no context ends meanwhile
  for (fake::Context* context : adapter.contexts) context->close_events();
}

int fake_objects(void) { return fake::live_objects(); }

}  // extern "C"
