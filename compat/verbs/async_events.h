// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include "compat/common/acknowledgements.h"
#include "compat/verbs/context.h"

namespace diwarp::compat {

/// The asynchronous events of one object, on their way to the program. The owner removes the object
/// from the engine first, and then calls end().
class AsyncEvents final : public EventTarget, public AsyncEventCounter {
 public:
  /// `element` is what events are about, as they name it.
  AsyncEvents(Context& context, decltype(ibv_async_event::element) element)
      : context_(context), element_(element) {}
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;

  void on_async_event(ibv_event_type type) override;
  void count_fetched_event() override { acknowledgements_.count_fetched(); }
  void acknowledge() { acknowledgements_.acknowledge(); }
  /// Takes back what the program has not fetched, and waits until it has acknowledged the rest.
  void end();

 private:
  Context& context_;
  const decltype(ibv_async_event::element) element_;
  Acknowledgements acknowledgements_;
};

}  // namespace diwarp::compat
