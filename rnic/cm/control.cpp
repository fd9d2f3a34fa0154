// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/control.h"

#include <pthread.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/require.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/signals_blocked.h"
#include "rnic/cm/awaited_work.h"
#include "rnic/cm/blocking_startup.h"
#include "rnic/cm/lingering_close.h"
#include "rnic/cm/meeting.h"

namespace diwarp::rnic {

namespace {

/// In manual mode a look at the control path costs a system call, so not every step takes one.
constexpr Duration kStepInterval = std::chrono::microseconds(20);

}  // namespace

struct Control::Parts {
  Meetings meetings;            // on the control path
  size_t lingering_closes = 0;  // on the control path; outlives those that it counts
  boost::asio::io_context context{1};
  // Keeps run() going while there is nothing to do.
  boost::asio::any_io_executor busy = boost::asio::require(
      context.get_executor(), boost::asio::execution::outstanding_work.tracked);
  std::thread thread;
  std::chrono::steady_clock::time_point last_step;  // guarded by the baton
  std::mutex mutex;                                 // guards removables
  std::vector<std::weak_ptr<Removable>> removables;
};

Control::Control(DeviceContext& device) : device_(device), parts_(std::make_unique<Parts>()) {
  // Has the context take its descriptors now, where set-up reports that there are none.
  const boost::asio::posix::stream_descriptor first(parts_->context);
  Engine& engine = device.engine();
  if (engine.has_thread()) {
    const SignalsBlocked blocked;
    parts_->thread = std::thread([this] { run_thread(); });
  } else {
    engine.exclusively([&] { engine.control_turn().set_step([this] { return step(); }); });
  }
}

Control::~Control() {
  Engine& engine = device_.engine();
  engine.exclusively([&] { engine.control_turn().set_step({}); });
  parts_->context.stop();
  if (parts_->thread.joinable()) parts_->thread.join();
}

boost::asio::io_context& Control::context() { return parts_->context; }

Counters& Control::counters() { return device_.counters(); }

void Control::raise(const AsyncEvent& event) { device_.raise(event); }

void Control::run_thread() {
  ::pthread_setname_np(::pthread_self(), "diwarp-control");
  while (!parts_->context.stopped()) within_memory([this] { return parts_->context.run(); });
}

/// The object of a handler that found no memory goes with it: a connection that was being
/// made, for example. The others go on.
size_t Control::within_memory(const std::function<size_t()>& handlers) {
  try {
    return handlers();
  } catch (const std::bad_alloc&) {
    count_no_memory();
    return 1;
  }
}

void Control::count_no_memory() {
  counters().add_shared(Counter::drop_no_memory);
  log::write(LogLevel::info, {.device = device_.name()},
             "there is no memory for a connection that begins or ends: it is closed");
}

size_t Control::step() {
  const auto now = std::chrono::steady_clock::now();
  if (now - parts_->last_step < kStepInterval) return 0;
  const size_t handlers = within_memory([this] { return parts_->context.poll(); });
  if (handlers == 0) parts_->last_step = now;
  return handlers;
}

NegotiatedConnection Control::connect(const Address& peer, const ConnectOptions& options) {
  return open_connection(*this, peer, options);
}

NegotiatedConnection Control::connect_on(int descriptor, const ConnectOptions& options) {
  return initiate_on(*this, descriptor, options);
}

NegotiatedConnection Control::accept_on(int descriptor, const AcceptOptions& options,
                                        Duration timeout) {
  return respond_on(*this, descriptor, options, timeout);
}

std::shared_ptr<PendingMeeting> Control::make_meeting(uint32_t number, const NamedPeer& peer,
                                                      MeetingParty& party) {
  return std::make_shared<Meeting>(*this, number, peer, party);
}

Meetings& Control::meetings() { return parts_->meetings; }

void Control::start_lingering_close(std::unique_ptr<llp::Stream> stream,
                                    std::vector<std::byte> final_bytes) {
  // At once what the stream takes: the device may be gone before the control path gets to it.
  const ConstBytes all(final_bytes);
  const size_t sent = all.empty() ? 0 : stream->send({&all, 1}).bytes;
  final_bytes.erase(final_bytes.begin(), final_bytes.begin() + static_cast<ptrdiff_t>(sent));
  try {
    post_lingering_close(std::move(stream), std::move(final_bytes));
  } catch (const std::bad_alloc&) {
    count_no_memory();  // the connection is closed at once
  }
}

void Control::post_lingering_close(std::unique_ptr<llp::Stream> stream,
                                   std::vector<std::byte> final_bytes) {
  boost::asio::post(parts_->context, [this, connection = std::move(stream),
                                      bytes = std::move(final_bytes)]() mutable {
    if (parts_->lingering_closes >= kMaxLingeringCloses)
      return counters().add_shared(Counter::rc_lingers_limited);  // the connection is closed
    std::make_shared<LingeringClose>(parts_->context, std::move(connection), std::move(bytes),
                                     parts_->lingering_closes)
        ->begin();
  });
}

void Control::add_removable(std::weak_ptr<Removable> removable) {
  const std::lock_guard lock(parts_->mutex);
  std::erase_if(parts_->removables, [](const auto& known) { return known.expired(); });
  parts_->removables.push_back(std::move(removable));
}

void Control::announce_removal() {
  std::vector<std::weak_ptr<Removable>> all;
  {
    const std::lock_guard lock(parts_->mutex);
    all = parts_->removables;
  }
  for (const std::weak_ptr<Removable>& known : all)
    if (const std::shared_ptr<Removable> removable = known.lock()) removable->on_removal();
}

bool Control::has_thread() const { return parts_->thread.joinable(); }

Engine& Control::engine() { return device_.engine(); }

void Control::exclusively(const std::function<void()>& work) {
  if (!parts_->thread.joinable()) return device_.engine().exclusively(work);
  AwaitedWork awaited(work);
  boost::asio::post(parts_->context, AwaitedWork::Handler(awaited));
  awaited.wait();
}

}  // namespace diwarp::rnic
