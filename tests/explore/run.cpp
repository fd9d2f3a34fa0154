// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <ostream>

#include "base/clock.h"
#include "describe.h"
#include "end.h"
#include "ledger.h"
#include "testbed.h"
#include "wire.h"

namespace diwarp::explore {

namespace {

using namespace std::chrono_literals;

/// Events that were put off happen when the wire has been silent for so long.
constexpr Duration kPutOff = 300ms;
/// After so long a silence nothing is under way any more: above all intervals between attempts.
constexpr Duration kQuiet = 1100ms;
/// Everything has ended after so long, or never will: several times each time-out.
constexpr Duration kPatience = 40s;
constexpr Duration kPause = 3s;
constexpr Duration kLongestStep = 250ms;
/// Ends that have sent so much more than any scenario needs only keep each other alive: then time
/// passes faster.
constexpr uint32_t kMostDatagrams = 400;
/// So many are sent only by ends that answer each other for ever.
constexpr uint32_t kEndless = 20000;
/// Read Requests that may be unanswered in an association (docs/wire-format.md).
constexpr size_t kReadPlaces = 16;

class Run {
 public:
  Run(Testbed& bed, const Scenario& scenario, const Depth& depth, Choices& choices,
      std::ostream* trace)
      : bed_(bed),
        scenario_(scenario),
        depth_(depth),
        choices_(choices),
        trace_(trace),
        started_(bed.clock.now()),
        ledger_(scenario),
        events_(scenario.events()),
        ends_{End(bed_.devices[0], scenario, ledger_, 0),
              End(bed_.devices[1], scenario, ledger_, 1)} {
    for (size_t side = 0; side < kSides; ++side) to_post_[side] = scenario.operations[side].size();
  }

  Outcome execute();

 private:
  struct Alternative {
    std::optional<Event> event;
    Fate fate = Fate::deliver;
  };

  // What happens.
  void warm_up();
  void start();
  void explore();
  void pass_datagram();
  bool fall_silent();
  bool pass_time();
  void do_what_was_put_off();
  void probe();
  void greet();
  void probe_receives();
  void probe_places(size_t side);

  // What is asked.
  std::optional<Fate> ask_fate(const Datagram& datagram);
  bool ask_event();
  void add_fates();
  void add_events();
  const Alternative& ask();
  bool may_happen(const Event& event) const;

  // How it is done.
  void perform(const Event& event);
  void post(size_t side, size_t operation);
  void post_receives(size_t side);
  void apply(const Event& event);
  void restart(size_t side, EventKind kind);
  void settle();
  void recover(size_t side);
  template <class Done>
  bool wait_until(Done&& done);
  size_t next_operation(size_t side) const {
    return scenario_.operations[side].size() - to_post_[side];
  }
  bool nothing_put_off() const;
  void tell(const std::string& line);
  void tell_of(const Datagram& datagram, Fate fate);

  Testbed& bed_;
  const Scenario& scenario_;
  const Depth& depth_;
  Choices& choices_;
  std::ostream* const trace_;
  const Time started_;
  Ledger ledger_;
  std::vector<Event> events_;  // that have not happened
  std::array<End, kSides> ends_;
  std::array<size_t, kSides> to_post_{};
  std::array<bool, kSides> has_receives_{};
  std::vector<Alternative> alternatives_;
  uint32_t asked_datagrams_ = 0;
  uint32_t passed_datagrams_ = 0;
  bool silent_ = false;  // and that was noted
  Time happened_{};      // when something was done on purpose, or nothing was left to do
  Duration quiet_{0};
  Duration step_{0};
};

Outcome Run::execute() {
  warm_up();
  start();
  explore();
  ledger_.finish();
  const uint32_t datagrams = passed_datagrams_;
  if (ledger_.violations().empty()) greet();
  for (End& end : ends_) end.check_at_rest();
  if (ledger_.violations().empty()) probe();
  return {.violations = ledger_.violations(), .datagrams = datagrams};
}

void Run::tell(const std::string& line) {
  if (trace_ == nullptr) return;
  const auto time =
      std::chrono::duration_cast<std::chrono::milliseconds>(bed_.clock.now() - started_);
  *trace_ << "  " << time.count() << " ms  " << line << '\n';
}

void Run::tell_of(const Datagram& datagram, Fate fate) {
  if (trace_ == nullptr) return;
  tell(std::to_string(datagram.number) + ' ' + name_of_side(datagram.from) + '>' +
       name_of_side(other(datagram.from)) + "  " + describe(datagram.bytes) +
       (fate == Fate::deliver ? "" : "  *** " + std::string(to_string(fate))));
}

/// Steps the devices until nothing happens any more, and sees what they report.
void Run::settle() {
  bed_.settle();
  for (size_t side = 0; side < kSides; ++side)
    if (!ends_[side].drain()) recover(side);
}

/// The acts of an application whose queue pair is in the error state.
void Run::recover(size_t side) {
  tell(std::string("queue pair ") + name_of_side(side) + " is in the error state");
  if (!ledger_.expects_error(side))
    ledger_.violation(std::string("the queue pair of ") + name_of_side(side) +
                      " went to the error state for no reason");
  ends_[side].drain();
  ledger_.flushed(side);
  restart(side, EventKind::reset);
}

// --- The course of a run.

void Run::warm_up() {
  if (scenario_.cold) return;
  for (End& end : ends_) end.post_receives(1);
  for (size_t side = 0; side < kSides; ++side) ends_[side].probe_send(ends_[other(side)]);
  const auto done = [&] { return ends_[0].pending() + ends_[1].pending() == 0; };
  if (!wait_until(done)) ledger_.violation("the association did not open");
}

void Run::start() {
  bed_.wire.hold(true);
  for (size_t side = 0; side < kSides; ++side)
    if (!scenario_.late_receives) post_receives(side);
  for (size_t side = 0; side < kSides; ++side)
    while (to_post_[side] != 0 && !scenario_.operations[side][next_operation(side)].later)
      post(side, next_operation(side));
}

void Run::explore() {
  happened_ = bed_.clock.now();
  const Time end = happened_ + kPatience;
  while (bed_.clock.now() < end) {
    if (passed_datagrams_ >= kEndless) return ledger_.violation("the ends never fall silent");
    if (bed_.wire.next() != nullptr)
      pass_datagram();
    else if (!fall_silent() && !pass_time())
      return;
  }
}

void Run::pass_datagram() {
  const Datagram& datagram = *bed_.wire.next();
  const std::optional<Fate> fate = ask_fate(datagram);
  if (!fate) return;
  tell_of(datagram, *fate);
  const size_t to = other(datagram.from);
  bed_.wire.decide(*fate);
  ++passed_datagrams_;
  silent_ = false;
  quiet_ = Duration::zero();
  if (passed_datagrams_ < kMostDatagrams) step_ = Duration::zero();
  if (!scenario_.slow && !scenario_.batch) return settle();
  if (scenario_.slow) ends_[to].step();
  if (bed_.wire.next() == nullptr) settle();
}

/// Nothing where an event comes before the datagram.
std::optional<Fate> Run::ask_fate(const Datagram& datagram) {
  if (datagram.decided || asked_datagrams_ >= depth_.datagrams) return Fate::deliver;
  alternatives_.clear();
  add_fates();
  add_events();
  const Alternative& chosen = ask();
  if (chosen.event) {
    perform(Event(*chosen.event));
    return std::nullopt;
  }
  ++asked_datagrams_;
  return chosen.fate;
}

/// The wire has nothing that is due. True where something happened.
bool Run::fall_silent() {
  if (silent_) return false;
  settle();
  if (bed_.wire.next() != nullptr || ask_event()) return true;
  silent_ = true;
  return bed_.wire.fall_silent();
}

/// True where an event happened.
bool Run::ask_event() {
  if (asked_datagrams_ >= depth_.datagrams) return false;
  alternatives_.assign(1, {});
  add_events();
  if (alternatives_.size() == 1) return false;
  const Alternative& chosen = ask();
  if (!chosen.event) return false;
  perform(Event(*chosen.event));
  return true;
}

/// False where nothing will happen any more.
bool Run::pass_time() {
  if (bed_.clock.now() - happened_ >= kPutOff) {
    happened_ = bed_.clock.now();
    if (bed_.wire.release_all()) return true;
    do_what_was_put_off();
  }
  const bool over = ledger_.all_over() && ends_[0].pending() + ends_[1].pending() == 0;
  if (quiet_ >= kQuiet && nothing_put_off() && over) return false;
  step_ = std::clamp<Duration>(step_ * 2, 1ms, kLongestStep);
  bed_.clock.advance(step_);
  quiet_ += step_;
  settle();
  return true;
}

bool Run::nothing_put_off() const {
  return to_post_[0] + to_post_[1] == 0 && has_receives_[0] && has_receives_[1];
}

void Run::do_what_was_put_off() {
  for (size_t side = 0; side < kSides; ++side) {
    if (!has_receives_[side]) return perform({EventKind::receives, side});
    if (to_post_[side] != 0) return perform({EventKind::post, side, next_operation(side)});
  }
}

// --- Questions.

void Run::add_fates() {
  alternatives_.push_back({});
  for (size_t i = 1; i < kFates; ++i) {
    const auto fate = static_cast<Fate>(i);
    // With nothing else on the wire these are the same as others.
    const bool differs = (fate != Fate::swap && fate != Fate::outage) || bed_.wire.more();
    if (differs && (depth_.fates >> i & 1) != 0)
      alternatives_.push_back({.event = {}, .fate = fate});
  }
}

void Run::add_events() {
  for (const Event& event : events_)
    if (may_happen(event)) alternatives_.push_back({.event = event});
}

/// Requests are posted in their order.
bool Run::may_happen(const Event& event) const {
  return event.kind != EventKind::post || event.operation == next_operation(event.side);
}

const Run::Alternative& Run::ask() {
  return alternatives_[choices_.choose(static_cast<uint32_t>(alternatives_.size()))];
}

// --- Events.

void Run::perform(const Event& event) {
  if (ends_[0].has_failed() || ends_[1].has_failed()) settle();
  tell("*** " + event.to_string());
  std::erase_if(events_, [&](const Event& one) {
    return one.kind == event.kind && one.side == event.side && one.operation == event.operation;
  });
  if (event.kind == EventKind::post)
    post(event.side, event.operation);
  else if (event.kind == EventKind::receives)
    post_receives(event.side);
  else
    apply(event);
  silent_ = false;
  happened_ = bed_.clock.now();
  settle();
}

void Run::post(size_t side, size_t operation) {
  --to_post_[side];
  ends_[side].post(operation, ends_[other(side)]);
}

void Run::post_receives(size_t side) {
  has_receives_[side] = true;
  ends_[side].post_receives(End::kReceives);
}

void Run::apply(const Event& event) {
  const bool restarts = event.kind == EventKind::reset || event.kind == EventKind::anew;
  if (restarts) return restart(event.side, event.kind);
  ledger_.happened(event);
  if (event.kind == EventKind::gone) ends_[other(event.side)].deregister_target(event.operation);
  if (event.kind == EventKind::invalidate)
    ends_[other(event.side)].invalidate_target(event.operation);
  if (event.kind == EventKind::source) ends_[event.side].deregister_buffer(event.operation);
  if (event.kind == EventKind::pause) bed_.clock.advance(kPause);
  using Known = Wire::Known;
  if (event.kind == EventKind::narrow) bed_.wire.narrow(kNarrowSegment, Known::limit);
  if (event.kind == EventKind::untold) bed_.wire.narrow(kNarrowSegment, Known::refusal);
  if (event.kind == EventKind::hole) bed_.wire.narrow(kNarrowSegment, Known::nothing);
}

void Run::restart(size_t side, EventKind kind) {
  ledger_.happened({kind, side});
  if (kind == EventKind::anew)
    ends_[side].make_anew();
  else
    ends_[side].reset();
  if (has_receives_[side]) ends_[side].post_receives(End::kReceives);
}

// --- What the queue pairs can do afterwards.

/// Lets time pass until `done`; false where that takes too long.
template <class Done>
bool Run::wait_until(Done&& done) {
  Duration step = 1ms;
  for (const Time end = bed_.clock.now() + kPatience; bed_.clock.now() < end;) {
    settle();
    if (done()) return true;
    bed_.clock.advance(step);
    step = std::min<Duration>(step * 2, kLongestStep);
  }
  return false;
}

void Run::probe() {
  tell("probes");
  probe_receives();
  for (size_t side = 0; side < kSides && ledger_.violations().empty(); ++side) probe_places(side);
}

/// From here on the wire holds nothing. Those whose peer restarted, or was forgotten, or has
/// something on the way that never gets through, find out when they next speak.
void Run::greet() {
  tell("greetings");
  bed_.wire.hold(false);
  for (int round = 0; round < 2; ++round) {
    for (size_t side = 0; side < kSides; ++side) {
      ends_[side].probe_read(ends_[other(side)]);
      wait_until([&] { return ends_[side].pending() == 0; });
    }
    if (!ends_[0].take_restarted() && !ends_[1].take_restarted()) return;
  }
  ledger_.violation("afterwards, a peer restarted that had not");
}

/// Uses all receives that are left.
void Run::probe_receives() {
  for (size_t side = 0; side < kSides; ++side)
    for (size_t left = ends_[other(side)].receives_left(); left > 0; --left)
      ends_[side].probe_send(ends_[other(side)]);
  const auto done = [&] { return ends_[0].pending() + ends_[1].pending() == 0; };
  if (!wait_until(done)) return ledger_.violation("afterwards, a Send never ended");
  for (size_t side = 0; side < kSides; ++side)
    if (ends_[side].receives_left() != 0)
      ledger_.violation(std::string("afterwards, ") + name_of_side(side) + " has a receive left");
}

/// How many Read Requests of `side` can be unanswered. Its peer cannot answer, for its Sends fill
/// the window of `side`, which has no receives.
void Run::probe_places(size_t side) {
  End& reader = ends_[side];
  End& target = ends_[other(side)];
  for (uint32_t i = 0; i < scenario_.window; ++i) target.probe_send(reader);
  settle();
  bed_.wire.clear_sizes();
  reader.probe_read(target);
  const std::vector<size_t>& sizes = bed_.wire.sizes(side);
  const size_t request = sizes.empty() ? 0 : sizes.front();
  for (size_t i = 0; i < kReadPlaces; ++i) reader.probe_read(target);
  const auto requests = [&] { return static_cast<size_t>(std::ranges::count(sizes, request)); };
  wait_until([&] { return requests() >= kReadPlaces; });
  if (requests() != kReadPlaces)
    ledger_.violation(std::string("afterwards, ") + name_of_side(side) + " has " +
                      std::to_string(requests()) + " of its places for Read Requests");
  reader.post_receives(scenario_.window);
  const auto done = [&] { return reader.pending() + target.pending() == 0; };
  if (!wait_until(done)) ledger_.violation("afterwards, a Read or Send never ended");
}

}  // namespace

Outcome run(Testbed& bed, const Scenario& scenario, const Depth& depth, Choices& choices,
            std::ostream* trace) {
  bed.begin_run();
  return Run(bed, scenario, depth, choices, trace).execute();
}

}  // namespace diwarp::explore
