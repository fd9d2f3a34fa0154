// SPDX-License-Identifier: Apache-2.0
#include "soak/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>

namespace soak {

namespace {

constexpr double kKeepEvery = 0.02;  // seconds between two looks at queue pairs and offers
/// What one turn of the loop counts at most: a process that did not run has waited for nothing.
constexpr double kLongestTurn = 0.5;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

diwarp::CmId open_listener(const diwarp::Device& device, const diwarp::CmEventChannel& channel) {
  diwarp::CmId listener(device, channel);
  listener.bind(device.address());
  listener.listen();
  return listener;
}

}  // namespace

Peer::Peer(const Settings& settings)
    : settings_(settings),
      random_(settings.seed * 1000003 + settings.life),
      device_(open_device(settings_, random_, zerocopy_)),
      pd_(device_),
      cq_(device_, random_.chance(0.7) ? 8192 : 64),
      shared_cq_(device_, kSharedReceives),
      shared_(pd_, {.max_wr = kSharedReceives}),
      listener_(open_listener(device_, channel_)) {
  ledger_.abort_at_finding(settings_.core);
  for (uint32_t place = 0; place < lines_.size(); ++place) {
    lines_[place].place = place;
    if (place >= 2 && place < kSharedPlace) lines_[place].remote = place - 2;
  }
  lines_[0].type = diwarp::QpType::ud;
  lines_[1].type = diwarp::QpType::rd;
  ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
}

int Peer::run() {
  last_ = steady_seconds();
  open_datagrams(lines_[0]);
  open_datagrams(lines_[1]);
  announce();
  while (!done_) {
    tick();
    read_input();
    take_events();
    if (!ending_) post_some();
    take_completions();
    if (wall_ < next_keep_) continue;
    next_keep_ = wall_ + kKeepEvery;
    for (Line& line : lines_) line.place < 2 ? keep_datagrams(line) : keep_stream(line);
    post_receives(lines_[kSharedPlace]);
    keep_offers();
    if (!ending_) disturb();
    find_stuck();
    if (wall_ >= next_round_) close_round();
  }
  close_round();
  return 0;
}

void Peer::tick() {
  const double time = steady_seconds();
  const double passed = std::min(time - last_, kLongestTurn);
  last_ = time;
  wall_ += passed;
  const bool held = std::any_of(remotes_.begin(), remotes_.end(),
                                [](const Remote& remote) { return remote.paused; });
  if (!held) now_ += passed;
}

void Peer::read_input() {
  char text[4096];
  ssize_t got = 0;
  while ((got = ::read(STDIN_FILENO, text, sizeof text)) > 0)
    input_.append(text, static_cast<size_t>(got));
  if (got == 0) done_ = true;  // the orchestrator is gone
  size_t begin = 0;
  for (size_t end; (end = input_.find('\n', begin)) != std::string::npos; begin = end + 1)
    obey(input_.substr(begin, end - begin));
  input_.erase(0, begin);
}

void Peer::obey(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  uint32_t index = 0, life = 0;
  words >> verb;
  if (verb == "end") {
    ending_ = true;
    return;
  }
  if (verb == "close") {
    done_ = true;
    return;
  }
  words >> index;
  if (index >= kMostPeers) return;
  if (verb == "paused" || verb == "running") {
    remotes_[index].paused = verb == "paused";
  } else if (verb == "gone") {
    forget_peer(index);
  } else if (verb == "peer") {
    std::array<std::string, 3> texts;
    words >> life >> texts[0] >> texts[1] >> texts[2];
    std::array<diwarp::Address, 3> addresses;
    for (size_t i = 0; i < 3; ++i) addresses[i] = diwarp::Address::parse(texts[i]);
    learn_peer(index, life, addresses);
  } else if (verb == "from") {
    words >> life;
    std::string text;
    std::getline(words >> std::ws, text);
    if (remotes_[index].life == life) hear(index, text);
  }
}

void Peer::learn_peer(uint32_t index, uint32_t life, std::array<diwarp::Address, 3> addresses) {
  Remote& remote = remotes_[index];
  if (remote.life != life) {
    forget_peer(index);
    remote.life = life;
  }
  remote.addresses = addresses;
}

void Peer::forget_peer(uint32_t index) {
  remotes_[index] = Remote{};
  for (Offer& offer : offers_) {
    if (offer.remote == index) offer.until = 0, offer.asked_back = true;
  }
}

void Peer::hear(uint32_t index, const std::string& text) {
  std::istringstream words(text);
  std::string verb;
  uint64_t number = 0;
  words >> verb;
  if (verb == "offer") return take_offer(index, words);
  words >> number;
  if (verb == "withdraw") {
    for (Lent& lent : remotes_[index].lent) {
      if (lent.id == number) lent.asked_back = true;
    }
    return_offer(index, number);
  } else if (verb == "released") {
    Offer* offer = find_offer(number);
    if (offer != nullptr) offer->until = 0;
  } else if (verb == "gap") {
    hear_gap(index, number);
  } else if (verb == "partial") {
    hear_partial(index, number);
  }
}

/// RD: the peer delivered a Send after this one, which it did not deliver.
void Peer::hear_gap(uint32_t index, uint64_t number) {
  bool posted = false;
  for (Request& request : requests_.places()) {
    if (request.id == 0 || request.line != 1 || request.remote != index ||
        request.operation != Operation::send || request.number != number)
      continue;
    request.passed_over = posted = true;
  }
  const std::set<uint64_t>& failed = remotes_[index].failed;
  const bool forgotten = !failed.empty() && number < *failed.begin();
  if (posted || forgotten || failed.contains(number)) return;
  ledger_.finding("lost", "RD: Send " + std::to_string(number) + " to process " +
                              std::to_string(index) + " was reported as delivered, and was not");
}

/// RD: the peer was told of a part of a Write-Record.
void Peer::hear_partial(uint32_t index, uint64_t offer) {
  for (Request& request : requests_.places()) {
    if (request.id != 0 && request.line == 1 && request.remote == index &&
        request.operation == Operation::write_record && request.offer == offer)
      request.passed_over = true;
  }
  if (remotes_[index].written.contains(offer))
    ledger_.finding("lost", "RD: a Write-Record to process " + std::to_string(index) +
                                " was reported as delivered, and came in part");
}

void Peer::tell(uint32_t index, const std::string& text) {
  const uint32_t life = remotes_[index].life;
  if (life == 0) return;
  Ledger::print("to " + std::to_string(index) + " " + std::to_string(life) + " " + text);
}

void Peer::announce() {
  const auto text = [](const Line& line) {
    return line.qp ? line.qp->address().to_string() : std::string("0.0.0.0:0");
  };
  Ledger::print("ready " + listener_.local_address().to_string() + " " + text(lines_[0]) + " " +
                text(lines_[1]));
}

void Peer::close_round() {
  next_round_ = wall_ + settings_.round;
  plant_fault();
  if (arena_.overruns() != overruns_) {
    overruns_ = arena_.overruns();
    ledger_.finding("wrong-byte", "something was written behind the end of an operation's memory");
  }
  double oldest = now_;
  size_t posted = 0;
  for (const Request& request : requests_.places()) {
    if (request.id == 0 || request.operation == Operation::receive) continue;
    oldest = std::min(oldest, request.posted);
    ++posted;
  }
  nlohmann::json line{{"round", ++rounds_}, {"seconds", wall_},        {"ran", now_},
                      {"posted", posted},   {"oldest", now_ - oldest}, {"ending", ending_}};
  if (done_ || rounds_ % 10 == 0) {
    auto& counters = line["counters"];
    for (const diwarp::CounterValue& counter : device_.counters()) {
      if (counter.value != 0) counters[std::string(counter.name)] = counter.value;
    }
  }
  ledger_.round(std::move(line));
}

/// The library's report on a queue pair, for a reader who looks for the cause of a finding.
std::string Peer::describe(const Line& line) const {
  if (!line.qp) return "there is no queue pair";
  const diwarp::QueuePairAttributes attributes = line.qp->query();
  std::ostringstream text;
  text << "the queue pair is in " << to_string(attributes.state) << ", " << attributes.posted_sends
       << " sends and " << attributes.posted_receives << " receives are posted";
  if (line.type != diwarp::QpType::rd) return text.str();
  for (const diwarp::ReliablePeer& peer : line.qp->peers())
    text << "; peer " << peer.address.to_string() << ": " << peer.in_flight << " of "
         << peer.congestion_window << " in flight";
  return text.str();
}

/// Every operation and every change of a queue pair ends within the bound.
void Peer::find_stuck() {
  for (Request& request : requests_.places()) {
    if (request.id == 0) continue;
    Line& line = lines_[request.line];
    // A receive waits for a message, unless its queue pair has ended.
    if (request.operation == Operation::receive && line.state != Line::State::ending) continue;
    const double since = request.operation == Operation::receive ? line.since : request.posted;
    if (now_ - since < settings_.stuck) continue;
    ledger_.finding("stuck", std::string(to_string(line.type)) + ": " +
                                 std::string(to_string(request.operation)) + " of " +
                                 std::to_string(request.buffer.bytes().size()) +
                                 " bytes to process " + std::to_string(request.remote) +
                                 " is not done after " + std::to_string(now_ - since) + " s; " +
                                 describe(line));
    request.posted = line.since = now_ + 1e9;
  }
  for (Line& line : lines_) {
    if ((line.state != Line::State::ending && line.state != Line::State::connecting) ||
        now_ - line.since < settings_.stuck)
      continue;
    ledger_.finding("stuck", std::string(to_string(line.type)) + ": a queue pair is " +
                                 (line.state == Line::State::ending ? "ending" : "connecting") +
                                 " after " + std::to_string(now_ - line.since) + " s, with " +
                                 std::to_string(line.sends + line.receives) + " requests; " +
                                 describe(line));
    line.since = now_ + 1e9;
  }
}

void Peer::plant_fault() {
  if (planted("leak")) {
    leaked_.resize(leaked_.size() + (size_t{1} << 20), std::byte{1});
  } else if (planted("descriptor-leak")) {
    for (int i = 0; i < 4; ++i) [[maybe_unused]] const int leaked = ::dup(STDERR_FILENO);
  } else if (planted("crash") && rounds_ == 2) {
    std::abort();
  } else if (planted("end") && rounds_ == 2) {
    std::exit(0);
  }
}

}  // namespace soak
