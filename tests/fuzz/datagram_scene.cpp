// SPDX-License-Identifier: Apache-2.0
#include "fuzz/datagram_scene.h"

#include <algorithm>
#include <chrono>

#include "rnic/device.h"
#include "verbs/handle_access.h"

namespace diwarp::fuzz {

namespace {

using namespace std::chrono_literals;

constexpr uint32_t kQKey = 0x1234;

/// Small bounds, so that they are reached.
DatagramOptions datagram_options(Input& input) {
  DatagramOptions options;
  const uint8_t bounds = input.u8();
  const uint8_t more = input.u8();
  options.q_key = kQKey;
  options.segment = (bounds & 1) != 0 ? 128 : 0;
  options.record_completion = static_cast<RecordCompletion>(more % 3);
  options.max_open_messages = 1 + (bounds >> 1 & 3);
  options.max_open_per_source = 1 + (bounds >> 3 & 1);
  options.max_open_records = 1 + (bounds >> 4 & 3);
  options.max_open_records_per_source = 1 + (bounds >> 6 & 3);
  options.max_sources = 2 + (more >> 2 & 3);
  options.max_record_ranges = 1 + (more >> 4 & 3);
  options.max_validity_maps = more >> 6 & 3;
  options.closed_per_source = 4;
  options.refused_per_source = 2;
  options.error_queue = 2;
  options.read = {.timeout = 50ms,
                  .retries = more & 1u,
                  .max_outstanding = 2,
                  .window = 1 + (more >> 1 & 1u),
                  .max_responses = 2,
                  .max_responses_per_source = 1 + (bounds & 1u)};
  return options;
}

QueuePairInit options_of(Input& input) {
  const uint8_t bits = input.u8();
  QueuePairInit options;
  options.type = (bits & 1) != 0 ? QpType::rd : QpType::ud;
  options.signal_all = true;
  options.capacity = {.max_send_wr = 16, .max_recv_wr = 8};
  options.datagram = datagram_options(input);
  options.reliable = {.peer_timeout = 3s,
                      .keep_alive = 200ms,
                      .idle_timeout = 5s,
                      .max_peers = 4,
                      .receive_window = 1u + (bits >> 1 & 3u) * 3,
                      .max_buffer = (bits & 8) != 0 ? size_t{4096} : size_t{1} << 20};
  if ((bits & 16) != 0) options.reliable.completion_order = CompletionOrder::peer;
  return options;
}

}  // namespace

DatagramScene::DatagramScene(Input& input)
    : clock_(Time(1000s)),
      network_(llp::MemoryNetwork::create({.queue_datagrams = 128})),
      options_(options_of(input)),
      target_(add_device("10.0.0.1"), options_, 3),
      honest_(add_device("10.0.0.2"), options_, 7),
      strangers_{{{*network_, Address::parse("10.0.1.1", 7001), 1, target_for_strangers()},
                  {*network_, Address::parse("10.0.1.1", 7002), 2, target_for_strangers()},
                  {*network_, Address::parse("10.0.1.2", 7003), 3, target_for_strangers()}}} {}

Device& DatagramScene::add_device(const char* host) {
  rnic::DeviceParts parts;
  parts.clock = &clock_;
  parts.datagram_links = [network = network_](const Address& local, const DatagramOptions&) {
    return network->open(local);
  };
  const DeviceOptions options{.progress = Progress::manual, .io = IoBackend::syscall};
  devices_.push_back(handle_of<Device>(
      std::make_shared<rnic::Device>(Address::parse(host), options, std::move(parts))));
  return devices_.back();
}

StrangerTarget DatagramScene::target_for_strangers() {
  return {.address = target_.address(),
          .q_key = kQKey,
          .base = DatagramMemory::kBase,
          .stag = [this](uint8_t which) { return target_.memory().stag(which); }};
}

void DatagramScene::settle() {
  constexpr int kMostSteps = 20000;
  for (int step = 0; step < kMostSteps; ++step)
    if (devices_[0].progress() + devices_[1].progress() == 0) return;
  fail("The devices never come to rest");
}

/// Receives first: a successful request was delivered.
void DatagramScene::look() {
  settle();
  target_.take_receives(honest_);
  honest_.take_receives(target_);
  target_.take_completions();
  honest_.take_completions();
  for (DatagramStranger& stranger : strangers_) stranger.hear();
  target_.memory().check();
  honest_.memory().check();
}

// --- What happens.

void DatagramScene::act(Input& input) {
  const uint8_t what = input.u8();
  DatagramStranger& stranger = strangers_[what >> 5 & 3 ? (what >> 5 & 3) - 1u : 0];
  if ((what & 16) == 0)
    stranger.act(input);
  else
    act_as_application(input, stranger);
  if ((what & 0x80) == 0) look();
}

void DatagramScene::act_as_application(Input& input, DatagramStranger& stranger) {
  switch (input.u8() % 12) {
    case 0:
    case 1:
      return target_.post_receive(input.flag() ? 400 : 64);
    case 2:
      return honest_.post_receive(400);
    case 3:
    case 4:
      return post_to(input, honest_, target_, target_.address());
    case 5:
      return post_to(input, target_, honest_, honest_.address());
    case 6:
    case 7:
      stranger.introduce();
      return post_to(input, target_, honest_, stranger.address());
    case 8:
    case 9:
      return pass_time(input);
    case 10:
      return change_target(input);
    default:
      return ask_target(input);
  }
}

void DatagramScene::post_to(Input& input, DatagramEnd& from, DatagramEnd& peer, const Address& to) {
  const uint8_t what = input.u8();
  const uint8_t bits = input.u8();
  const size_t length = bits * 2u;
  const RemoteMemory remote{peer.memory().stag(what >> 5), DatagramMemory::kBase};
  switch (what % 5) {
    case 0:
      return from.post_record(to, remote, length);
    case 1:
      return from.post_read(to, remote, length, {.retries = bits % 3 - 1});
    case 2:
      return from.post_send(to, kQKey, length, remote.stag);
    default:
      return from.post_send(to, kQKey ^ (what == 0xff ? 1u : 0u), length);
  }
}

void DatagramScene::pass_time(Input& input) {
  constexpr std::array<Duration, 8> kSteps{1ms, 5ms, 20ms, 60ms, 120ms, 500ms, 4s, 61s};
  clock_.advance(kSteps[input.u8() % kSteps.size()]);
}

void DatagramScene::change_target(Input& input) {
  const uint8_t what = input.u8();
  switch (what % 8) {
    case 0:
      return target_.post_invalidate(target_.memory().stag(what >> 3 & 7));
    case 1:
      return target_.stop();
    case 2:
      return target_.restart(honest_);
    case 3:
      return honest_.restart(target_);
    default:
      return target_.memory().toggle_region(what >> 3);
  }
}

/// Acts that change nothing.
void DatagramScene::ask_target(Input& input) {
  QueuePair& target = target_.queue_pair();
  switch (input.u8() % 4) {
    case 0:
      static_cast<void>(target.poll_error());
      break;
    case 1:
      static_cast<void>(target.open_records());
      break;
    case 2:
      if (options_.type == QpType::rd) static_cast<void>(target.peers());
      break;
    default:
      static_cast<void>(target.query());
  }
}

// --- The end.

/// Long enough for all time-outs, with a receive for whatever has waited for one.
void DatagramScene::finish() {
  look();
  target_.memory().restore_receives();
  Duration step = 1ms;
  const auto over = [&] { return target_.idle() && honest_.idle(); };
  for (const Time end = clock_.now() + 60s; clock_.now() < end && !over();) {
    for (size_t i = 0; i < DatagramRegion::kSlots; ++i)
      for (DatagramEnd* one : {&target_, &honest_}) one->post_receive(DatagramRegion::kSlotBytes);
    clock_.advance(step);
    step = std::min<Duration>(step * 2, 250ms);
    look();
  }
  target_.check_over(honest_);
  honest_.check_over(target_);
}

}  // namespace diwarp::fuzz
