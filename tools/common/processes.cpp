// SPDX-License-Identifier: Apache-2.0
#include "common/processes.h"

#include <sched.h>

#include <chrono>
#include <deque>
#include <string>

#include "common/child.h"
#include "common/failure.h"

namespace diwarp::tools {
namespace {

/// For the other ends to end by themselves, once this one has. Busy machines take their time.
constexpr Duration kPatience = std::chrono::seconds(15);

/// The children of one run. They have their time to end by themselves in any case.
class Crew {
 public:
  ~Crew() { finish(); }

  void add(const std::function<void()>& body) {
    children_.emplace_back([&] {
      body();
      return 0;
    });
  }

  void finish() {
    const Time deadline = std::chrono::steady_clock::now() + kPatience;
    for (Child& child : children_) child.finish(deadline);
  }

  void require_success() const {
    for (const Child& child : children_) {
      if (!child.finished()) throw Failure("The other end's process did not end by itself.");
      if (child.status() > Child::kSignalled) {
        throw Failure("The other end's process was ended by signal " +
                      std::to_string(child.status() - Child::kSignalled) + ".");
      }
      if (child.status() != 0) throw Failure("The other end failed after the run.");
    }
  }

 private:
  std::deque<Child> children_;
};

}  // namespace

void run_processes(const std::vector<std::function<void()>>& children,
                   const std::function<void()>& parent) {
  Crew others;
  for (const std::function<void()>& child : children) others.add(child);
  parent();
  others.finish();
  others.require_success();
}

void bind_to_processor(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu < CPU_SETSIZE) CPU_SET(static_cast<size_t>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    throw Failure("This process may not use processor " + std::to_string(cpu) +
                  ": nproc tells how many there are, counted from 0.");
  }
}

}  // namespace diwarp::tools
