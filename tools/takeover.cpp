// SPDX-License-Identifier: Apache-2.0
// diwarp-takeover: inbound work goes on while the application computes.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "common/cost.h"
#include "common/device_choice.h"
#include "common/failure.h"
#include "common/interrupt.h"
#include "common/json_output.h"
#include "common/pairing.h"
#include "common/poller.h"
#include "common/program.h"
#include "common/session.h"
#include "common/summary.h"

namespace diwarp::tools {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr const char* kName = "diwarp-takeover";
constexpr const char* kDescription =
    "One process polls its completion queue once and then computes, without any verbs call; "
    "another sends it a message meanwhile. Tells how long after the send the bytes lie in the "
    "first one's memory: its RNIC thread takes over within a fraction of a millisecond of the "
    "last poll.";

/// A message that has not come by then is lost.
constexpr Duration kPatience = std::chrono::milliseconds(500);
constexpr uint64_t kMaxPause = 1000;  // us

struct Settings {
  QpType transport = QpType::ud;
  uint64_t rounds = 1000;
  std::string json_file;
  Ends ends;
};

/// The time as a message carries it; both ends are on one host and have one clock.
uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch())
          .count());
}

EndpointShape shape(QpType transport) {
  return {.transport = transport,
          .send_size = sizeof(uint64_t),
          .send_slots = 4,
          .receive_size = sizeof(uint64_t),
          .receive_slots = 4};
}

/// The end that computes, and measures.
class Computing {
 public:
  Computing(Endpoint& endpoint, Control& control)
      : endpoint_(endpoint), control_(control), poller_(endpoint.completion_queue(), control) {}

  void round() {
    take_latecomers();
    const uint64_t last_poll = now_ns();
    const uint64_t pause = random_() % kMaxPause;
    control_.send({{"type", "go"}, {"pause_us", pause}});
    const uint64_t sent = spin_on_memory(steady_clock::now() + kPatience + microseconds(pause));
    const uint64_t seen = now_ns();
    if (sent == 0) {
      ++lost_;
      return;
    }
    delays_us_.push_back(static_cast<double>(seen - std::max(sent, last_poll)) / 1e3);
    take_completion();
  }

  Json result() const {
    const Summary delays = summarize(delays_us_);
    return {{"type", "result"},  {"min", delays.min}, {"p50", delays.p50},
            {"p99", delays.p99}, {"max", delays.max}, {"lost", lost_}};
  }

 private:
  /// The time at which the message was sent, read from where it is placed; 0 if none comes.
  uint64_t spin_on_memory(Time deadline) {
    do {
      for (int i = 0; i < 256; ++i) {
        const uint64_t value = arrival().load(std::memory_order_acquire);
        if (value != 0) return value;
      }
      check_interrupted();
    } while (steady_clock::now() < deadline);
    return 0;
  }

  /// The memory of the receive that comes next; receives complete in the order of posting.
  std::atomic_ref<uint64_t> arrival() {
    return std::atomic_ref<uint64_t>(
        *reinterpret_cast<uint64_t*>(endpoint_.receive_slot(next_slot_).data()));
  }

  void take_completion() {
    const auto completions = poller_.next(steady_clock::now() + kPatience);
    if (completions.empty()) throw Failure("A message came, but its completion did not.");
    for (const WorkCompletion& completion : completions) take(completion);
  }

  /// Messages of earlier rounds must not pass for this round's. The poll that finds no more is the
  /// last one of the round.
  void take_latecomers() {
    WorkCompletion completion;
    while (endpoint_.completion_queue().poll({&completion, 1}) > 0) take(completion);
  }

  void take(const WorkCompletion& completion) {
    endpoint_.check(completion);
    arrival().store(0, std::memory_order_relaxed);
    endpoint_.post_receive_again(next_slot_);
    next_slot_ = (next_slot_ + 1) % endpoint_.shape().receive_slots;
  }

  Endpoint& endpoint_;
  Control& control_;
  Poller poller_;
  std::minstd_rand random_{1};
  std::vector<double> delays_us_;
  uint32_t next_slot_ = 0;
  uint64_t lost_ = 0;
};

void play_computing(const DeviceChoice& choice, Control& control, const Terms& terms) {
  Device device = choice.open(control.local_address());
  const Json row = control.expect("row");
  Endpoint endpoint(device, shape(terms.transport));
  endpoint.post_receives();
  pair_as_server(endpoint, device, control, row, terms.token);
  Computing computing(endpoint, control);
  const Meter meter(device);
  for (uint64_t i = 0; i < terms.rows; ++i) computing.round();
  Json result = computing.result();
  result["cost"] = to_json(meter.cost());
  control.send(result);
  part(endpoint);
}

/// The other end: sends a message a while after it is told to, and sleeps otherwise, so as not to
/// take a processor from the end that is measured.
void send_one(Endpoint& endpoint, Control& control, Poller& poller) {
  const uint64_t pause = number_in(control.expect("go"), "pause_us", 0, kMaxPause);
  std::this_thread::sleep_for(microseconds(pause));
  const uint64_t now = now_ns();
  std::memcpy(endpoint.send_slot(0).data(), &now, sizeof now);
  endpoint.post_send(0);
  for (const WorkCompletion& completion : poller.next(steady_clock::now() + kPatience)) {
    endpoint.check(completion);
  }
}

void print_text(const Settings& settings, const Json& json) {
  const Json& delay = json["delay_us"];
  std::printf(
      "%s: from the send to the bytes in the computing process's memory, in us:\n"
      "min %.1f, median %.1f, 99%% %.1f, max %.1f; %llu messages, %llu lost\n"
      "processor time of the sending and of the computing process: %s s\n",
      json["transport"].get<std::string>().c_str(), delay["min"].get<double>(),
      delay["p50"].get<double>(), delay["p99"].get<double>(), delay["max"].get<double>(),
      static_cast<unsigned long long>(settings.rounds),
      static_cast<unsigned long long>(json["lost"].get<uint64_t>()), processor_text(json).c_str());
}

void print(const Settings& settings, const Json& result, JsonFile& file) {
  const Json json = {{"transport", to_string(settings.transport)},
                     {"rounds", settings.rounds},
                     {"lost", result.at("lost")},
                     {"delay_us",
                      {{"min", result.at("min")},
                       {"p50", result.at("p50")},
                       {"p99", result.at("p99")},
                       {"max", result.at("max")}}},
                     {"processor", result.at("processor")}};
  if (!file.replaces_text()) print_text(settings, json);
  file.write(json_output(kName, json));
}

void play_sending(const Settings& settings, const Terms& terms, Control& control, JsonFile& file) {
  Device device = settings.ends.device.open(control.local_address());
  Endpoint endpoint(device, shape(settings.transport));
  endpoint.post_receives();
  pair_as_client(endpoint, control, {{"type", "row"}}, terms.token);
  Poller poller(endpoint.completion_queue(), control);
  const Meter meter(device);
  for (uint64_t i = 0; i < settings.rounds; ++i) send_one(endpoint, control, poller);
  const Cost cost = meter.cost();
  Json result = control.expect("result");
  result["processor"] = processor_times(cost, cost_in(result.at("cost")));
  part(endpoint);
  print(settings, result, file);
  if (result.at("lost") == settings.rounds) throw Failure("No message arrived.");
}

void run(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  Settings settings;
  std::string transport = "ud";
  DeviceArguments device;
  app.add_option("--transport", transport, "The transport")
      ->type_name("ud|rc")
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds, "Messages")->capture_default_str();
  device.add_to(app, "software on the loopback interface");
  add_json_option(app, settings.json_file);
  if (!parse_command_line(app, argc, argv)) return;
  if (transport != "ud" && transport != "rc") throw Failure("Choose --transport ud or rc.");
  if (settings.rounds < 1 || settings.rounds > 10'000) {
    throw Failure("--rounds needs a number from 1 to 10000.");
  }
  settings.transport = transport == "ud" ? QpType::ud : QpType::rc;
  settings.ends.device = device.choice();
  settings.ends.address = Address::loopback(AddressFamily::ipv4);
  JsonFile json(settings.json_file);
  Terms terms{.transport = settings.transport, .rows = settings.rounds};
  run_session(kName, settings.ends, terms,
              {.client = [&](Control& control) { play_sending(settings, terms, control, json); },
               .server =
                   [&](Control& control, const std::vector<Terms>& theirs) {
                     play_computing(settings.ends.device, control, theirs.front());
                   }});
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
