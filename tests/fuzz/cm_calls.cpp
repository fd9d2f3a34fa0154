// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cm_calls.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "fuzz/pattern.h"
#include "fuzz/verbs_calls.h"

namespace diwarp::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMostPrivateData = 512;

}  // namespace

template <class Function>
bool CmCalls::call(CmEntry& entry, Call which, bool right, Function&& function) {
  const bool allowed = entry.model.allows(which);
  const bool done = accepted(function);
  if (!entry.model.deaf()) {
    require(allowed || !done, "a call was taken that does not fit what was done before");
    require(!allowed || !right || done, "a right call was refused");
  }
  if (done) entry.model.called(which);
  return done;
}

void CmCalls::make(Call which, CmEntry& entry) {
  switch (which) {
    case Call::resolve_addr:
      return resolve(entry);
    case Call::resolve_route:
      return void(call(entry, Call::resolve_route, true, [&] { entry.id.resolve_route(); }));
    case Call::bind:
      return bind(entry);
    case Call::listen:
      return listen(entry);
    case Call::connect:
      return connect(entry);
    case Call::accept:
      return accept(entry);
    case Call::reject:
      return reject(entry);
    case Call::disconnect:
      return disconnect(entry);
  }
}

/// Of any length, each with contents of its own. None is a little too long at times.
std::vector<std::byte> CmCalls::private_data() {
  static constexpr std::array<size_t, 8> kLengths{0, 1, 4, 60, 508, 509, 512, 513};
  const size_t length = kLengths[run_.in.below(kLengths.size())];
  return pattern(static_cast<uint32_t>(run_.said.size()), length);
}

void CmCalls::create(size_t slot) {
  const size_t device = run_.in.below(CmRun::kDevices);
  const size_t channel = run_.in.below(CmRun::kDevices);
  const uint64_t context = run_.in.u8();
  CmId id(run_.devices[device], *run_.channels[channel], context);
  const uint64_t number = id.number();
  run_.ids[slot] =
      std::make_unique<CmEntry>(CmEntry{std::move(id), CmModel(number, context), device, channel});
}

void CmCalls::resolve(CmEntry& entry) {
  const Address peer = run_.any_address();
  call(entry, Call::resolve_addr, false, [&] { entry.id.resolve_addr(peer); });
}

void CmCalls::bind(CmEntry& entry) {
  static constexpr std::array<const char*, 4> kLocals{"127.0.0.1:0", "127.0.0.2:0", "0.0.0.0:0",
                                                      "[::1]:0"};
  const Address local = Address::parse(kLocals[run_.in.below(kLocals.size())]);
  const bool right = local.is_any() || local == run_.devices[entry.device].address().with_port(0);
  call(entry, Call::bind, right && local.family() == AddressFamily::ipv4,
       [&] { entry.id.bind(local); });
}

void CmCalls::listen(CmEntry& entry) {
  ListenOptions options;
  options.max_startups = 1 + run_.in.below(3);
  options.max_requests = 1 + run_.in.below(3);
  call(entry, Call::listen, true, [&] { entry.id.listen(options); });
}

void CmCalls::connect(CmEntry& entry) {
  const size_t place = run_.in.below(CmRun::kQueuePairs);
  if (!run_.parties[place]) return;
  static constexpr std::array<Duration, 4> kTimeouts{0ms, 1ms, 20ms, 10s};
  const std::vector<std::byte> data = private_data();
  const unsigned how = run_.in.u8();
  ConnectOptions options{.private_data = data, .timeout = kTimeouts[run_.in.below(4)]};
  options.crc = (how & 1U) != 0;
  options.markers = (how & 2U) != 0;
  options.peer_to_peer = (how & 4U) != 0;
  options.fallback = (how & 8U) != 0;
  options.revision = static_cast<uint8_t>(how >> 4U & 3U);
  options.ord = options.ird = static_cast<uint16_t>(how >> 6U);
  run_.said.push_back(data);
  const auto connect = [&] { entry.id.connect(run_.parties[place]->qp, options); };
  if (!call(entry, Call::connect, false, connect)) return;
  require(data.size() <= kMostPrivateData, "too much private data was taken");
  entry.queue_pair = place;
}

void CmCalls::accept(CmEntry& entry) {
  const size_t place = run_.in.below(CmRun::kQueuePairs);
  if (!run_.parties[place]) return;
  const std::vector<std::byte> data = private_data();
  const unsigned how = run_.in.u8();
  AcceptOptions options{.private_data = data};
  options.crc = (how & 1U) != 0;
  options.markers = (how & 2U) != 0;
  options.ord = options.ird = static_cast<uint16_t>(how >> 6U);
  run_.said.push_back(data);
  bool peer_gone = false;
  const auto accept = [&] {
    try {
      entry.id.accept(run_.parties[place]->qp, options);
    } catch (const Error& error) {
      peer_gone = error.code() == Errc::connection_lost;
      throw;
    }
  };
  if (call(entry, Call::accept, false, accept)) {
    require(data.size() <= kMostPrivateData, "too much private data was taken");
    entry.queue_pair = place;
  } else if (peer_gone) {
    entry.model.gave_up();
  }
}

void CmCalls::reject(CmEntry& entry) {
  const std::vector<std::byte> data = private_data();
  run_.said.push_back(data);
  call(entry, Call::reject, data.size() <= 508, [&] { entry.id.reject(data); });
}

void CmCalls::disconnect(CmEntry& entry) {
  const DisconnectOptions options{.timeout = run_.in.flag() ? 5s : Duration(0)};
  call(entry, Call::disconnect, true, [&] { entry.id.disconnect(options); });
}

void CmCalls::move(size_t from) {
  const size_t to = run_.in.below(CmRun::kIds);
  if (to == from) return;
  CmEntry& source = *run_.ids[from];
  CmId husk = std::move(source.id);
  source.id = std::move(husk);
  check_husk(husk);
  if (run_.ids[to] != nullptr) run_.destroy(to);
  run_.ids[to] = std::move(run_.ids[from]);
}

void CmCalls::check_husk(CmId& husk) {
  bool done = false;
  switch (run_.in.below(6)) {
    case 0:
      done = accepted([&] { husk.resolve_addr(Address::parse("127.0.0.1:1")); });
      break;
    case 1:
      done = accepted([&] { husk.listen(); });
      break;
    case 2:
      done = accepted([&] { husk.disconnect(); });
      break;
    case 3:
      done = accepted([&] { husk.reject(); });
      break;
    case 4:
      done = accepted([&] { husk.number(); });
      break;
    default:
      done = accepted([&] { husk.resolve_route(); });
  }
  require(!done, "a handle that was moved from took a call");
}

}  // namespace diwarp::fuzz
