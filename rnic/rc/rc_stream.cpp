// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_stream.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "rnic/context/connection_control.h"
#include "rnic/engine/attach.h"

namespace diwarp::rnic {

void RcStream::tell(std::string_view message) const {
  log::tell(LogLevel::info, {.device = device_.name()}, [&] {
    return "On the connection with " + peer_.to_string() + ", " + std::string(message);
  });
}

void RcStream::attach_none() {
  Engine& engine = device_.engine();
  detach_endpoint(engine, endpoint_);
  attach_endpoint(engine, endpoint_, -1);
  engine.inputs().set_reading(endpoint_, false);
}

void RcStream::attach(std::unique_ptr<llp::Stream> stream) {
  Engine& engine = device_.engine();
  stream = device_.connector().serve(std::move(stream));
  detach_endpoint(engine, endpoint_);
  try {
    attach_link(engine, endpoint_, *stream);
  } catch (...) {
    attach_none();
    throw;
  }
  stream_ = std::move(stream);
  local_ = stream_->local_address();
  peer_ = stream_->peer_address();
  if (!stream_->set_busy_poll(engine.options().busy_poll)) {
    engine.counters().add(Counter::busy_poll_refused);
    tell("the system's choice of busy polling stays");
  }
  if (stream_->descriptor() < 0) stream_->on_ready([engine = &engine] { engine->wake(); });
}

void RcStream::allow_zero_copy(bool copied) {
  Engine& engine = device_.engine();
  const size_t from = engine.options().zerocopy_from;
  zero_copy_ = from != 0 && !copied && stream_->allow_zero_copy(from, engine.counters());
  if (from == 0 || zero_copy_) return;
  engine.counters().add(Counter::rc_zerocopy_refused);
  tell("what is sent is copied");
}

void RcStream::close(bool in_order, std::vector<std::byte> final_bytes) {
  if (stream_->descriptor() < 0) stream_->on_ready({});
  attach_none();  // the poller has to forget the descriptor before it is closed
  std::unique_ptr<llp::Stream> stream = std::move(stream_);
  if (final_bytes.empty()) {
    if (!in_order) stream->abort();
    return;
  }
  device_.engine().counters().add(Counter::rc_terminates_sent);
  if (stream->leave_engine())
    return device_.connections().start_lingering_close(std::move(stream), std::move(final_bytes));
  const ConstBytes all(final_bytes);
  stream->send({&all, 1});
  stream->shutdown_send();
}

}  // namespace diwarp::rnic
