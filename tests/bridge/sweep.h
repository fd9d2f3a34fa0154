// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <future>
#include <stdexcept>
#include <string>
#include <string_view>

#include "bridge/fake.h"
#include "fake_rdma_core/functions.h"

/// Runs a scenario with each call of rdma-core's functions failing in turn.
namespace diwarp::bridge_test {

/// No wait of a scenario lasts longer. Its end is a hang, and never how a failure is told.
inline constexpr Duration kBounded = 10s;

/// A scenario waited in vain.
struct TimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A completion or an event told of a failure.
struct Told : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A request that must be posted, or be refused with a code.
inline void posted(const std::error_code& error) {
  if (error) throw Told(error.message());
}

/// The next completion, which must come.
inline WorkCompletion good(CompletionQueue& cq) {
  const std::optional<WorkCompletion> one = cq.wait(kBounded);
  if (!one) throw TimedOut("no completion came");
  if (one->status != WcStatus::success) throw Told(std::string(to_string(one->status)));
  return *one;
}

/// The next event of a connection manager's id, which must come and be of this type.
inline CmEvent event(CmEventChannel& channel, CmEventType wanted) {
  std::optional<CmEvent> one = channel.get_event(kBounded);
  if (!one) throw TimedOut("no event " + std::string(to_string(wanted)));
  if (one->type != wanted) throw Told(std::string(to_string(one->type)));
  return std::move(*one);
}

/// The request of a peer that connects meanwhile; throws what the peer's side threw.
inline ConnectionRequest request_of(Listener& listener, std::future<void>& connecting) {
  for (Duration waited{0}; waited < kBounded; waited += 20ms) {
    if (auto request = listener.get_request(20ms)) return std::move(*request);
    if (connecting.wait_for(0s) == std::future_status::ready) connecting.get();
  }
  throw TimedOut("no connection request came");
}

/// Connects `a` with `b`.
inline void connect(QueuePair& a, QueuePair& b, const Device& device_of_b) {
  Listener listener(device_of_b, 0);
  auto connecting =
      std::async(std::launch::async, [&] { a.connect(listener.address(), {.timeout = kBounded}); });
  ConnectionRequest request = request_of(listener, connecting);
  request.accept(b);
  connecting.get();
}

/// How a scenario ended.
enum class End : uint8_t { worked, told, hung };

template <class Scenario>
End run(Scenario& scenario, std::string& what) {
  try {
    scenario();
    return End::worked;
  } catch (const TimedOut& error) {
    what = error.what();
    return End::hung;
  } catch (const Told& error) {
    what = error.what();
  } catch (const Error& error) {
    what = error.what();
    if (error.code() == Errc::timed_out) return End::hung;
  }
  return End::told;
}

/// Functions whose failure leaves the object there, and what it rests on.
inline bool ends_an_object(std::string_view function) {
  return function.starts_with("ibv_destroy_") || function.starts_with("ibv_dealloc_") ||
         function == "ibv_close_device" || function == "rdma_destroy_id";
}

/// Functions whose failure a program may see nothing of.
inline bool may_go_unnoticed(std::string_view function) {
  // Is tried again, also where a wait for a completion finds that it cannot sleep until it comes.
  if (function == "ibv_poll_cq" || function == "ibv_req_notify_cq" || function.ends_with("_event"))
    return true;
  // Moves a queue pair to error, or ends a connection, which goes with it: then the bridge flushes.
  if (function == "ibv_modify_qp" || function == "rdma_disconnect") return true;
  // Arms a limit while receives are posted: its event tells, too early.
  if (function == "ibv_modify_srq") return true;
  // Asks for addresses and devices that the program does not name.
  if (function == "rdma_bind_addr" || function.starts_with("ibv_query_")) return true;
  return ends_an_object(function) || function == "ibv_dereg_mr";
}

/// librdmacm's fails for a null event alone.
inline bool cannot_fail(std::string_view function) { return function == "rdma_ack_cm_event"; }

inline int plausible_error(std::string_view function) {
  const bool makes = function.find("_create_") != std::string_view::npos ||
                     function.find("_alloc_") != std::string_view::npos ||
                     function.find("_reg_mr") != std::string_view::npos;
  return makes ? ENOMEM : EIO;
}

/// The first calls of each function that fail in turn. Polls, of which there are as many as time
/// allows, have no others.
inline constexpr int kMostCalls = 24;

/// Fails the call number `call` of the function in a run of the scenario. False where the scenario
/// makes no such call.
template <class Scenario>
bool fail_one(std::string_view function, int call, Scenario& scenario) {
  const std::string name(function);
  CAPTURE(name, call);
  const int before = fake().objects();
  fake().clear();
  fake().fail(name.c_str(), call, plausible_error(function));
  std::string what;
  const End end = run(scenario, what);
  CAPTURE(what);
  CHECK(end != End::hung);
  const bool reached = fake().calls(name.c_str()) > call;
  if (!reached) CHECK(end == End::worked);
  if (reached && !may_go_unnoticed(function)) CHECK(end == End::told);
  if (!ends_an_object(function)) CHECK(eventually([&] { return fake().objects() <= before; }));
  return reached;
}

/// The calls that the scenario makes fail, one in each run: each run ends without a hang, and
/// leaves nothing behind but what could not be ended.
template <class Scenario>
void sweep(Scenario scenario) {
  fake().clear();
  scenario();  // which works
  for (const fake::FunctionRow& row : fake::kFunctions) {
    if (row.on_error == fake::OnError::nothing || cannot_fail(row.name)) continue;
    for (int call = 0; call < kMostCalls && fail_one(row.name, call, scenario); ++call) {
    }
  }
  fake().clear();
}

}  // namespace diwarp::bridge_test
