// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/clock.h"
#include "ends.h"
#include "ledger.h"
#include "probes.h"
#include "questions.h"
#include "testbed.h"
#include "trace.h"
#include "wire.h"

namespace diwarp::explore {

namespace {

using namespace std::chrono_literals;

/// Events that were put off happen when the wire has been silent for so long.
constexpr Duration kPutOff = 300ms;
/// After so long a silence nothing is under way any more: above all intervals between attempts.
constexpr Duration kQuiet = 1100ms;
/// Ends that have sent so much more than any scenario needs only keep each other alive: then time
/// passes faster.
constexpr uint32_t kMostDatagrams = 400;
/// So many are sent only by ends that answer each other for ever.
constexpr uint32_t kEndless = 20000;

class Run {
 public:
  Run(Testbed& bed, const Scenario& scenario, const Depth& depth, Choices& choices,
      std::ostream* trace)
      : bed_(bed),
        scenario_(scenario),
        trace_(trace, bed.clock),
        ledger_(scenario),
        ends_(bed, scenario, ledger_, trace_),
        questions_(scenario, depth, choices, bed.wire, ends_),
        probes_(bed, scenario, ledger_, trace_, ends_) {}

  Outcome execute();

 private:
  void start();
  void explore();
  void pass_datagram();
  std::optional<Fate> ask_fate(const Datagram& datagram);
  bool fall_silent();
  bool ask_event();
  bool pass_time();
  void do_what_was_put_off();
  void perform(const Event& event);

  Testbed& bed_;
  const Scenario& scenario_;
  const Trace trace_;
  Ledger ledger_;
  Ends ends_;
  Questions questions_;
  Probes probes_;
  uint32_t passed_datagrams_ = 0;
  bool silent_ = false;  // and that was noted
  Time happened_{};      // when something was done on purpose, or nothing was left to do
  Duration quiet_{0};
  Duration step_{0};
};

Outcome Run::execute() {
  if (!scenario_.cold) probes_.open();
  start();
  explore();
  ledger_.finish();
  const uint32_t datagrams = passed_datagrams_;
  if (ledger_.violations().empty()) probes_.greet();
  for (size_t side = 0; side < kSides; ++side) ends_[side].check_at_rest();
  if (ledger_.violations().empty()) probes_.probe();
  return {.violations = ledger_.violations(), .datagrams = datagrams};
}

void Run::start() {
  bed_.wire.hold(true);
  for (size_t side = 0; side < kSides; ++side)
    if (!scenario_.late_receives) ends_.post_receives(side);
  for (size_t side = 0; side < kSides; ++side)
    while (ends_.left_to_post(side) != 0 &&
           !scenario_.operations[side][ends_.next_operation(side)].later)
      ends_.post(side, ends_.next_operation(side));
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
  trace_.tell_of(datagram, *fate);
  const size_t to = other(datagram.from);
  bed_.wire.decide(*fate);
  ++passed_datagrams_;
  silent_ = false;
  quiet_ = Duration::zero();
  if (passed_datagrams_ < kMostDatagrams) step_ = Duration::zero();
  if (!scenario_.slow && !scenario_.batch) return ends_.settle();
  if (scenario_.slow) ends_[to].step();
  if (bed_.wire.next() == nullptr) ends_.settle();
}

/// Nothing where an event comes before the datagram.
std::optional<Fate> Run::ask_fate(const Datagram& datagram) {
  if (datagram.decided || questions_.over()) return Fate::deliver;
  const Questions::Answer chosen = questions_.ask_fate();
  if (!chosen.event) return chosen.fate;
  perform(*chosen.event);
  return std::nullopt;
}

/// The wire has nothing that is due. True where something happened.
bool Run::fall_silent() {
  if (silent_) return false;
  ends_.settle();
  if (bed_.wire.next() != nullptr || ask_event()) return true;
  silent_ = true;
  return bed_.wire.fall_silent();
}

/// True where an event happened.
bool Run::ask_event() {
  if (questions_.over()) return false;
  const std::optional<Event> chosen = questions_.ask_event();
  if (!chosen) return false;
  perform(*chosen);
  return true;
}

/// False where nothing will happen any more.
bool Run::pass_time() {
  if (bed_.clock.now() - happened_ >= kPutOff) {
    happened_ = bed_.clock.now();
    if (bed_.wire.release_all()) return true;
    do_what_was_put_off();
  }
  const bool over = ledger_.all_over() && ends_.pending() == 0;
  if (quiet_ >= kQuiet && ends_.nothing_put_off() && over) return false;
  step_ = std::clamp<Duration>(step_ * 2, 1ms, kLongestStep);
  bed_.clock.advance(step_);
  quiet_ += step_;
  ends_.settle();
  return true;
}

void Run::do_what_was_put_off() {
  for (size_t side = 0; side < kSides; ++side) {
    if (!ends_.has_receives(side)) return perform({EventKind::receives, side});
    if (ends_.left_to_post(side) != 0)
      return perform({EventKind::post, side, ends_.next_operation(side)});
  }
}

void Run::perform(const Event& event) {
  if (ends_.has_failed()) ends_.settle();
  trace_.tell("*** " + event.to_string());
  questions_.happens(event);
  ends_.perform(event);
  silent_ = false;
  happened_ = bed_.clock.now();
  ends_.settle();
}

}  // namespace

Outcome run(Testbed& bed, const Scenario& scenario, const Depth& depth, Choices& choices,
            std::ostream* trace) {
  bed.begin_run();
  return Run(bed, scenario, depth, choices, trace).execute();
}

}  // namespace diwarp::explore
