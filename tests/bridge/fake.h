// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "contract/pair.h"
#include "fake_rdma_core/control.h"

/// Hardware devices of the fake rdma-core, and what steers it.
namespace diwarp::bridge_test {

using namespace contract;

/// The devices of this program: one on each address of the loopback interface, and three that
/// cannot be used.
inline constexpr const char* kDevices =
    "fake0=127.0.0.1 fake1=[::1] down0=127.0.0.2:down ib0=127.0.0.3:infiniband bare0=127.0.0.4";

inline constexpr const char* kHardware = "hw:fake0";

/// control.h's functions, of the library that the bridge loads.
class Control {
 public:
  Control() : library_(load()) {}

 private:
  static void* load() {
    ::setenv("DIWARP_RDMA_CORE", FAKE_RDMA_CORE_FOLDER, 1);
    ::setenv("FAKE_RDMA_CORE_DEVICES", kDevices, 1);
    ::setenv("DIWARP_LOG", "off", 0);  // failures are what is asked for
    void* const library = ::dlopen(FAKE_RDMA_CORE_FOLDER "/libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    return library;
  }
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };
  Symbol find(const char* name) const { return {::dlsym(library_, name)}; }

  void* const library_;

 public:
  decltype(&fake_fail) fail = find("fake_fail");
  decltype(&fake_signal) signal = find("fake_signal");
  decltype(&fake_calls) calls = find("fake_calls");
  decltype(&fake_clear) clear = find("fake_clear");
  decltype(&fake_deny) deny = find("fake_deny");
  decltype(&fake_choose_key) choose_key = find("fake_choose_key");
  decltype(&fake_raise) raise = find("fake_raise");
  decltype(&fake_remove) remove = find("fake_remove");
  decltype(&fake_objects) objects = find("fake_objects");
};

inline const Control& fake() {
  static const Control only;
  return only;
}

/// Waits until `predicate` holds, at most for kPatience. Returns whether it does.
template <class Predicate>
bool eventually(Predicate predicate) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// The first object of each case: the fake is then as it is at first, and when the case ends no
/// object may be left that was not there before.
class Fresh {
 public:
  Fresh() : before_(fake().objects()) { fake().clear(); }
  ~Fresh() {
    // The bridge's thread may hold a device for a moment.
    CHECK(eventually([this] { return fake().objects() == before_; }));
    fake().clear();
  }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;

 private:
  const int before_;
};

/// The message that a call is refused with; empty where it is not refused.
template <class Call>
std::string message_of(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Whether a device is a hardware device, alone or with software beside it.
inline bool is_hardware(const Device& device) {
  return !has(device.query().capabilities, Capability::adopted_streams);
}

inline Device open_hardware(const DeviceOptions& options = {}) {
  return Device::open(kHardware, options);
}

}  // namespace diwarp::bridge_test
