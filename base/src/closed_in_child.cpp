// SPDX-License-Identifier: Apache-2.0
#include "base/closed_in_child.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace diwarp {

constexpr int kNone = -1;

/// Places are never freed, and used again: a child that comes at any moment, of a signal handler as
/// well, finds a list that is whole.
struct ClosedInChild::Place {
  std::atomic<int> descriptor{kNone};
  std::atomic<bool> taken{false};
  Place* next = nullptr;
};

struct ClosedInChild::Places {
  static inline std::atomic<Place*> first{nullptr};

  static Place& take() {
    for (Place* place = first.load(); place != nullptr; place = place->next)
      if (!place->taken.exchange(true)) return *place;
    auto* const place = new Place;
    place->taken.store(true);
    place->next = first.load();
    while (!first.compare_exchange_weak(place->next, place)) {
    }
    return *place;
  }

  static void close_all() {
    for (Place* place = first.load(); place != nullptr; place = place->next) {
      const int descriptor = place->descriptor.exchange(kNone);  // once, also in its own children
      if (descriptor != kNone) ::close(descriptor);
    }
  }

  // Code that makes places links this file, so the handler is there before main().
  static inline const int installed = pthread_atfork(nullptr, nullptr, &close_all);
};

ClosedInChild::ClosedInChild(int descriptor) : place_(Places::take()) {
  place_.descriptor.store(descriptor);
}

ClosedInChild::~ClosedInChild() {
  place_.descriptor.store(kNone);
  place_.taken.store(false);
}

}  // namespace diwarp
