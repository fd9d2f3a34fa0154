// SPDX-License-Identifier: Apache-2.0
// The connection manager's calls, what may come of them, and the end of all.
#include "fuzz/cm_scene.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "fuzz/pattern.h"
#include "fuzz/verbs_calls.h"

namespace diwarp::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 20s;  // of the end: an attempt's timeout is 10 s at most
constexpr int kQuietSteps = 4;       // what went over loopback has come by then
constexpr Duration kStep = 25us;     // the control path moves once in 20 us
constexpr size_t kMostPrivateData = 512;

/// Without a system call, which would take longer.
void wait_a_step() {
  const auto end = std::chrono::steady_clock::now() + kStep;
  while (std::chrono::steady_clock::now() < end) continue;
}

Device open_device(size_t index) {
  return Device::open("127.0.0." + std::to_string(index + 1),
                      {.progress = Progress::manual, .io = IoBackend::syscall});
}

}  // namespace

CmScene::Party::Party(const Device& host, size_t on, QpType type)
    : device(on),
      pd(host),
      cq(host, 8),
      qp(pd, {.type = type, .send_cq = cq, .recv_cq = cq, .capacity = {4, 4}}) {}

CmScene::CmScene(Input& in) : in_(in), said_(1) {
  for (size_t i = 0; i < kDevices; ++i) {
    devices_.push_back(open_device(i));
    channels_[i].emplace();
  }
}

CmScene::~CmScene() = default;

void CmScene::act() {
  const size_t slot = in_.below(kIds);
  Entry* const entry = ids_[slot].get();
  const uint32_t what = in_.below(16);
  if (what == 0) {
    change_party();
  } else if (what == 1) {
    be_stranger();
  } else if (what == 2 && in_.below(8) == 0) {
    close_channel();
  } else if (entry == nullptr) {
    create(slot);
  } else if (what == 3) {
    destroy(slot);
  } else if (what == 4) {
    move(slot);
  } else {
    switch (static_cast<Call>(what % 8)) {
      case Call::resolve_addr:
        resolve(*entry);
        break;
      case Call::resolve_route:
        call(*entry, Call::resolve_route, true, [&] { entry->id.resolve_route(); });
        break;
      case Call::bind:
        bind(*entry);
        break;
      case Call::listen:
        listen(*entry);
        break;
      case Call::connect:
        connect(*entry);
        break;
      case Call::accept:
        accept(*entry);
        break;
      case Call::reject:
        reject(*entry);
        break;
      case Call::disconnect:
        disconnect(*entry);
        break;
    }
  }
  settle();
}

// --- Calls.

template <class Function>
bool CmScene::call(Entry& entry, Call which, bool right, Function&& function) {
  const bool allowed = entry.model.allows(which);
  const bool done = accepted(function);
  if (!entry.model.deaf()) {
    require(allowed || !done, "a call was taken that does not fit what was done before");
    require(!allowed || !right || done, "a right call was refused");
  }
  if (done) entry.model.called(which);
  return done;
}

/// Of any length, each with contents of its own. None is a little too long at times.
std::vector<std::byte> CmScene::private_data() {
  static constexpr std::array<size_t, 8> kLengths{0, 1, 4, 60, 508, 509, 512, 513};
  const size_t length = kLengths[in_.below(kLengths.size())];
  return pattern(static_cast<uint32_t>(said_.size()), length);
}

/// Mostly of an id that listens.
Address CmScene::any_address() {
  Entry* const entry = ids_[in_.below(kIds)].get();
  if (entry != nullptr && entry->model.stage() == Stage::listening)
    return entry->id.local_address();
  static constexpr std::array<const char*, 4> kOthers{"127.0.0.1:1", "[::1]:5", "127.0.0.2:0",
                                                      "198.51.100.1:5"};
  return Address::parse(kOthers[in_.below(kOthers.size())]);
}

void CmScene::create(size_t slot) {
  const size_t device = in_.below(kDevices);
  const size_t channel = in_.below(kDevices);
  const uint64_t context = in_.u8();
  CmId id(devices_[device], *channels_[channel], context);
  const uint64_t number = id.number();
  ids_[slot] =
      std::make_unique<Entry>(Entry{std::move(id), CmModel(number, context), device, channel});
}

void CmScene::resolve(Entry& entry) {
  const Address peer = any_address();
  call(entry, Call::resolve_addr, false, [&] { entry.id.resolve_addr(peer); });
}

void CmScene::bind(Entry& entry) {
  static constexpr std::array<const char*, 4> kLocals{"127.0.0.1:0", "127.0.0.2:0", "0.0.0.0:0",
                                                      "[::1]:0"};
  const Address local = Address::parse(kLocals[in_.below(kLocals.size())]);
  const bool right = local.is_any() || local == devices_[entry.device].address().with_port(0);
  call(entry, Call::bind, right && local.family() == AddressFamily::ipv4,
       [&] { entry.id.bind(local); });
}

void CmScene::listen(Entry& entry) {
  ListenOptions options;
  options.max_startups = 1 + in_.below(3);
  options.max_requests = 1 + in_.below(3);
  call(entry, Call::listen, true, [&] { entry.id.listen(options); });
}

void CmScene::connect(Entry& entry) {
  const size_t place = in_.below(kQueuePairs);
  if (!parties_[place]) return;
  static constexpr std::array<Duration, 4> kTimeouts{0ms, 1ms, 20ms, 10s};
  const std::vector<std::byte> data = private_data();
  const unsigned how = in_.u8();
  ConnectOptions options{.private_data = data, .timeout = kTimeouts[in_.below(4)]};
  options.crc = (how & 1U) != 0;
  options.markers = (how & 2U) != 0;
  options.peer_to_peer = (how & 4U) != 0;
  options.fallback = (how & 8U) != 0;
  options.revision = static_cast<uint8_t>(how >> 4U & 3U);
  options.ord = options.ird = static_cast<uint16_t>(how >> 6U);
  said_.push_back(data);
  const auto connect = [&] { entry.id.connect(parties_[place]->qp, options); };
  if (!call(entry, Call::connect, false, connect)) return;
  require(data.size() <= kMostPrivateData, "too much private data was taken");
  entry.queue_pair = place;
}

void CmScene::accept(Entry& entry) {
  const size_t place = in_.below(kQueuePairs);
  if (!parties_[place]) return;
  const std::vector<std::byte> data = private_data();
  const unsigned how = in_.u8();
  AcceptOptions options{.private_data = data};
  options.crc = (how & 1U) != 0;
  options.markers = (how & 2U) != 0;
  options.ord = options.ird = static_cast<uint16_t>(how >> 6U);
  said_.push_back(data);
  bool peer_gone = false;
  const auto accept = [&] {
    try {
      entry.id.accept(parties_[place]->qp, options);
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

void CmScene::reject(Entry& entry) {
  const std::vector<std::byte> data = private_data();
  said_.push_back(data);
  call(entry, Call::reject, data.size() <= 508, [&] { entry.id.reject(data); });
}

void CmScene::disconnect(Entry& entry) {
  const DisconnectOptions options{.timeout = in_.flag() ? 5s : Duration(0)};
  call(entry, Call::disconnect, true, [&] { entry.id.disconnect(options); });
}

/// A handle that was moved from refuses everything.
void CmScene::move(size_t from) {
  const size_t to = in_.below(kIds);
  if (to == from) return;
  Entry& source = *ids_[from];
  CmId husk = std::move(source.id);
  source.id = std::move(husk);
  check_husk(husk);
  if (ids_[to] != nullptr) destroy(to);
  ids_[to] = std::move(ids_[from]);
}

void CmScene::check_husk(CmId& husk) {
  bool done = false;
  switch (in_.below(6)) {
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

// --- Ends.

void CmScene::destroy(size_t slot) {
  const CmModel model = ids_[slot]->model;
  const std::optional<size_t> place = ids_[slot]->queue_pair;
  ids_[slot].reset();
  if (model.deaf() || model.stage() != Stage::established) return;
  require(parties_[*place]->qp.state() == QpState::error,
          "an id went and left its connection open");
}

void CmScene::change_party() {
  const size_t place = in_.below(kQueuePairs);
  std::unique_ptr<Party>& party = parties_[place];
  if (!party) {
    const size_t device = in_.below(kDevices);
    const QpType type = in_.below(8) == 0 ? QpType::ud : QpType::rc;
    party = std::make_unique<Party>(devices_[device], device, type);
    return;
  }
  switch (in_.below(4)) {
    case 0:
      party.reset();
      return end_party(place, true);
    case 1:
      party->qp.modify(QpState::error);
      return end_party(place, false);
    case 2:
      party->qp.modify(QpState::reset);
      party->qp.modify(QpState::init);
      return end_party(place, false);
    default:
      accepted([&] { party->qp.modify(in_.flag() ? QpState::sqd : QpState::rts); });
  }
}

/// A connection ends with its queue pair, and that is told at once.
void CmScene::end_party(size_t place, bool destroyed) {
  std::vector<uint64_t> ended;
  for (const auto& entry : ids_) {
    if (!entry || entry->queue_pair != place) continue;
    if (entry->model.stage() == Stage::established) ended.push_back(entry->model.number());
    if (destroyed) entry->queue_pair.reset();
  }
  settle();
  for (const uint64_t number : ended) {
    const Entry* const entry = entry_of(number);
    require(entry->model.deaf() || entry->model.stage() == Stage::over,
            "a connection lost its queue pair, and nothing was told");
  }
}

/// A peer that speaks MPA as it likes, or not at all.
void CmScene::be_stranger() {
  UniqueFd& stranger = strangers_[in_.below(kStrangers)];
  if (stranger) {
    const std::vector<std::byte> bytes = in_.bytes(in_.below(40));
    stranger_spoke_ = true;
    ::send(stranger.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (in_.flag()) stranger.reset();
    return;
  }
  const Address to = any_address();
  if (to.family() != AddressFamily::ipv4 || to.host() == "198.51.100.1") return;
  stranger = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage name;
  const socklen_t length = to.to_sockaddr(name);
  if (::connect(stranger.get(), reinterpret_cast<sockaddr*>(&name), length) != 0)
    return stranger.reset();
  if (in_.flag()) return;
  static constexpr char kRequest[] = "MPA ID Req Frame\x50\x02\x00\x04\xc0\x01\xc0\x01";
  stranger_spoke_ = true;
  ::send(stranger.get(), kRequest, sizeof kRequest - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void CmScene::close_channel() {
  const size_t channel = in_.below(kDevices);
  for (const auto& entry : ids_)
    if (entry && entry->channel == channel) entry->model.become_deaf();
  channels_[channel].emplace();
}

// --- Events.

CmScene::Entry* CmScene::entry_of(uint64_t number) {
  const auto found = std::ranges::find_if(
      ids_, [&](const auto& entry) { return entry && entry->model.number() == number; });
  return found == ids_.end() ? nullptr : found->get();
}

void CmScene::settle() {
  for (int quiet = 0; quiet < kQuietSteps;) {
    size_t work = 0;
    for (Device& device : devices_) work += device.progress();
    quiet = take_events() || work != 0 ? 0 : quiet + 1;
    wait_a_step();
  }
}

bool CmScene::take_events() {
  bool any = false;
  for (size_t channel = 0; channel < kDevices; ++channel) {
    while (std::optional<CmEvent> event = channels_[channel]->get_event(Duration(0))) {
      any = true;
      take_event(channel, std::move(*event));
    }
  }
  return any;
}

void CmScene::take_event(size_t channel, CmEvent event) {
  check_private_data(event);
  if (event.type == CmEventType::connect_request) return take_request(channel, event);
  Entry* const entry = entry_of(event.id);
  require(entry != nullptr, "an event came for an id that is gone");
  require(entry->channel == channel && !entry->model.deaf(), "an event came by another channel");
  entry->model.take(event);
}

void CmScene::take_request(size_t channel, CmEvent& event) {
  Entry* const listener = entry_of(event.listener);
  require(listener != nullptr && listener->model.stage() == Stage::listening,
          "a request came for an id that does not listen");
  require(listener->channel == channel, "a request came by another channel");
  require(event.request && event.request->number() == event.id, "a request has no id");
  require(entry_of(event.id) == nullptr, "a request has the number of another id");
  const auto place = std::ranges::find_if(ids_, [](const auto& entry) { return !entry; });
  if (place == ids_.end()) return;  // rejected
  *place = std::make_unique<Entry>(Entry{std::move(*event.request),
                                         CmModel(event.id, event.context, Stage::requested),
                                         listener->device, channel});
}

void CmScene::check_private_data(const CmEvent& event) const {
  const bool known = std::ranges::find(said_, event.private_data) != said_.end();
  require(known || stranger_spoke_, "private data came that nobody sent");
}

// --- The end.

void CmScene::finish() {
  for (UniqueFd& stranger : strangers_) stranger.reset();
  for (auto& entry : ids_) {
    const bool answers = entry && (entry->model.stage() == Stage::listening ||
                                   entry->model.stage() == Stage::requested);
    if (answers) entry.reset();
  }
  wait_for_outcomes();
  for (size_t place = 0; place < kQueuePairs; ++place) {
    if (!parties_[place]) continue;
    parties_[place]->qp.modify(QpState::error);
    end_party(place, false);
  }
  drop_all();
}

/// Nobody listens or answers any more.
void CmScene::wait_for_outcomes() {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto waits = [this] {
    return std::ranges::any_of(ids_,
                               [](const auto& entry) { return entry && entry->model.waits(); });
  };
  settle();
  while (waits()) {
    require(std::chrono::steady_clock::now() < end, "an attempt to connect has no outcome");
    settle();
  }
}

void CmScene::drop_all() {
  const bool ids_first = in_.flag();
  for (int half = 0; half < 2; ++half) {
    if ((half == 0) == ids_first)
      for (auto& entry : ids_) entry.reset();
    else
      for (auto& party : parties_) party.reset();
    settle();
  }
}

}  // namespace diwarp::fuzz
