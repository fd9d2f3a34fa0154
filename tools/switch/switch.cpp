// SPDX-License-Identifier: Apache-2.0
/// An Ethernet switch between network namespaces, with a TAP device in each: it drops, delays and
/// reorders what leaves through its ports, from a seed, and limits the rate with a drop-tail queue.
///
/// Says "ready" when the devices are there. A line on standard input asks for a line of figures;
/// its end ends the program.
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/failure.h"
#include "common/interrupt.h"
#include "common/program.h"
#include "switch/egress.h"
#include "switch/frame.h"
#include "switch/tap.h"

namespace network {

namespace {

constexpr int kFramesAtOnce = 64;     // of one port, before the others have their turn
constexpr size_t kHeadBytes = 60;     // of a datagram, in the log
constexpr size_t kMostPlaces = 4096;  // of stations that are known; then all are learned anew

constexpr const char* kName = "diwarp-switch";
constexpr const char* kDescription =
    "A switch between network namespaces, in user space, that drops, delays and reorders packets "
    "from a seed, and limits their rate. It says \"ready\" when the devices are there. A line on "
    "standard input asks for a line of figures, a JSON list with an object for each port; the end "
    "of standard input ends it.";

struct Settings {
  std::vector<std::string> ports;  // "device=path of the namespace"
  Impairment impairment;
  std::string log;
};

struct Microseconds {
  double delay = 0;
  double jitter = 0;
  double lateness = 300;
};

struct Port {
  Tap tap;
  Egress egress;
  std::array<uint64_t, 4> fates = {};  // packets of TCP and UDP, by Fate
  uint64_t tcp_bytes = 0;              // that left, with their headers
  uint64_t udp_bytes = 0;
  uint64_t refused = 0;  // packets of TCP and UDP that the kernel did not take
};

/// A datagram whose fate was decided. What scripts read: fixed layout, host byte order.
struct LogEntry {
  uint8_t port = 0;  ///< the way out
  uint8_t fate = 0;
  uint16_t length = 0;  ///< of the UDP payload
  std::array<uint8_t, kHeadBytes> head = {};
};
static_assert(sizeof(LogEntry) == 64);

Time now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return Time(int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec);
}

/// Null where none is wanted.
FILE* open_log(const std::string& path) {
  if (path.empty()) return nullptr;
  FILE* const file = fopen(path.c_str(), "we");
  if (file == nullptr) throw diwarp::tools::Failure("The log " + path + " cannot be written.");
  return file;
}

class Switch {
 public:
  explicit Switch(const Settings& settings);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  /// One round: waits for frames or for the time of one to leave. False at the end of the input.
  bool step();
  /// Throws Failure where the log has not taken all.
  void finish();

 private:
  void receive(size_t from, Time at);
  void forward(size_t from, size_t to, Time at);
  void release(Port& port, Time at);
  void wait(std::vector<pollfd>& polled) const;
  bool answer();
  void print_figures() const;
  void log(size_t port, Fate fate, const Packet& packet) const;

  std::vector<Port> ports_;
  std::map<Mac, size_t> places_;  // which port a station was last seen at
  Frame frame_;
  FILE* log_;
};

Switch::Switch(const Settings& settings) : log_(open_log(settings.log)) {
  for (size_t i = 0; i < settings.ports.size(); ++i) {
    const std::string& port = settings.ports[i];
    const size_t split = port.find('=');
    if (split == std::string::npos)
      throw diwarp::tools::Failure("--port takes DEVICE=NAMESPACE_FILE, not " + port + ".");
    Impairment impairment = settings.impairment;
    impairment.seed += i;
    ports_.push_back(
        {.tap = Tap(port.substr(split + 1), port.substr(0, split)), .egress = Egress(impairment)});
  }
}

Switch::~Switch() {
  if (log_ != nullptr) fclose(log_);
}

void Switch::finish() {
  if (log_ == nullptr) return;
  const bool failed = ferror(log_) != 0;
  if (fclose(std::exchange(log_, nullptr)) != 0 || failed)
    throw diwarp::tools::Failure("The log cannot be written: the disk may be full.");
}

void Switch::log(size_t port, Fate fate, const Packet& packet) const {
  if (log_ == nullptr || packet.payload.empty()) return;
  LogEntry entry{.port = static_cast<uint8_t>(port),
                 .fate = static_cast<uint8_t>(fate),
                 .length = static_cast<uint16_t>(packet.payload.size())};
  std::copy_n(packet.payload.begin(), std::min(kHeadBytes, packet.payload.size()),
              entry.head.begin());
  fwrite(&entry, sizeof entry, 1, log_);
}

void Switch::forward(size_t from, size_t to, Time at) {
  if (to == from) return;
  const Packet packet = packet_of(frame_);
  const Fate fate = ports_[to].egress.offer(frame_, packet, at);
  if (packet.traffic()) ++ports_[to].fates[static_cast<size_t>(fate)];
  log(to, fate, packet);
}

void Switch::receive(size_t from, Time at) {
  for (int i = 0; i < kFramesAtOnce && ports_[from].tap.read(frame_); ++i) {
    if (places_.size() >= kMostPlaces) places_.clear();
    places_[source_of(frame_)] = from;
    const auto place = for_group(frame_) ? places_.end() : places_.find(destination_of(frame_));
    if (place != places_.end()) {
      forward(from, place->second, at);
    } else {
      for (size_t to = 0; to < ports_.size(); ++to) forward(from, to, at);
    }
  }
}

void Switch::release(Port& port, Time at) {
  while (const std::optional<Frame> frame = port.egress.take(at)) {
    const Packet packet = packet_of(*frame);
    if (!port.tap.write(*frame) && packet.traffic()) ++port.refused;
    const uint64_t bytes = frame->size() - std::min(frame->size(), kEthernetBytes);
    if (packet.protocol == kTcp) port.tcp_bytes += bytes;
    if (packet.protocol == kUdp) port.udp_bytes += bytes;
  }
}

void Switch::wait(std::vector<pollfd>& polled) const {
  for (const Port& port : ports_) polled.push_back({port.tap.descriptor(), POLLIN, 0});
  polled.push_back({STDIN_FILENO, POLLIN, 0});
  std::optional<Time> next;
  for (const Port& port : ports_) {
    const std::optional<Time> own = port.egress.next();
    if (own && (!next || *own < *next)) next = own;
  }
  const Time left = next ? std::max(*next - now(), Time{0}) : Time(1'000'000'000);
  const timespec timeout{.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                         .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
  ppoll(polled.data(), polled.size(), &timeout, nullptr);
}

bool Switch::answer() {
  char text[64];
  if (read(STDIN_FILENO, text, sizeof text) <= 0) return false;
  print_figures();
  return true;
}

bool Switch::step() {
  std::vector<pollfd> polled;
  wait(polled);
  const Time at = now();
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (polled[i].revents != 0) receive(i, at);
  }
  for (Port& port : ports_) release(port, now());
  return polled.back().revents == 0 || answer();
}

void Switch::print_figures() const {
  if (log_ != nullptr) fflush(log_);
  std::string text = "[";
  for (const Port& port : ports_) {
    text += text.size() > 1 ? ", " : "";
    text += "{\"passed\": " + std::to_string(port.fates[0]) +
            ", \"late\": " + std::to_string(port.fates[1]) +
            ", \"lost\": " + std::to_string(port.fates[2]) +
            ", \"overflowed\": " + std::to_string(port.fates[3]) +
            ", \"refused\": " + std::to_string(port.refused) +
            ", \"tcp_bytes\": " + std::to_string(port.tcp_bytes) +
            ", \"udp_bytes\": " + std::to_string(port.udp_bytes) + "}";
  }
  std::puts((text + "]").c_str());
  std::fflush(stdout);
}

void add_options(CLI::App& app, Settings& settings, Microseconds& times) {
  const CLI::Range share(0.0, 1.0);
  const CLI::Range positive(0.0, 60e6);
  Impairment& impairment = settings.impairment;
  app.add_option("--port", settings.ports, "A port: a TAP device of this name in that namespace")
      ->type_name("DEVICE=NAMESPACE_FILE")
      ->required();
  app.add_option("--loss", impairment.loss, "The share of the packets that are dropped")
      ->check(share);
  app.add_option("--burst", impairment.burst,
                 "How many losses come in a row, on average (default 1: independent ones)")
      ->check(CLI::Range(1.0, 1e6));
  app.add_option("--every", impairment.every, "Drop each so many-th packet");
  app.add_option("--duplicate", impairment.duplicate, "Probability that a packet leaves twice")
      ->check(share);
  app.add_option("--corrupt", impairment.corrupt,
                 "Probability that a bit of a UDP payload is flipped, which the checksum of UDP "
                 "shows to its receiver")
      ->check(share);
  app.add_option("--reorder", impairment.reorder, "Probability that a packet is late")
      ->check(share);
  app.add_option("--lateness", times.lateness, "How late, in microseconds")->check(positive);
  app.add_option("--delay", times.delay, "Of every packet, in microseconds")->check(positive);
  app.add_option("--jitter", times.jitter, "At most so many microseconds are added to the delay")
      ->check(positive);
  app.add_option("--rate", impairment.bits_per_second, "Bits a second; 0: no limit");
  app.add_option("--queue", impairment.queue, "Packets that wait for their turn, with --rate");
  app.add_option("--seed", impairment.seed, "Of the first port; the others count on");
  app.add_option("--log", settings.log, "A file for the fates of all datagrams");
}

Time from_microseconds(double value) { return Time(static_cast<int64_t>(value * 1000)); }

void run(int argc, char** argv) {
  Settings settings;
  Microseconds times;
  CLI::App app(kDescription, kName);
  add_options(app, settings, times);
  if (!diwarp::tools::parse_command_line(app, argc, argv)) return;
  settings.impairment.delay = from_microseconds(times.delay);
  settings.impairment.jitter = from_microseconds(times.jitter);
  settings.impairment.lateness = from_microseconds(times.lateness);
  Switch network_switch(settings);
  std::puts("ready");
  std::fflush(stdout);
  while (network_switch.step()) diwarp::tools::check_interrupted();
  network_switch.finish();
}

}  // namespace
}  // namespace network

int main(int argc, char** argv) {
  return diwarp::tools::run_program(network::kName, [&] { network::run(argc, argv); });
}
