// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "stack/support.h"

/// Two RD queue pairs that talk over a link that may lose, reorder and duplicate, in a time that is
/// moved by hand.
namespace diwarp::test {

inline constexpr Access kAllAccess =
    Access::local_write | Access::remote_write | Access::remote_read;

/// The outcome of datagrams: probabilities, as in llp::Impairment.
struct Trouble {
  uint64_t seed = 1;
  double drop = 0;
  double reorder = 0;
  double duplicate = 0;
  double corrupt = 0;
  double truncate = 0;

  operator llp::Impairment() const {  // NOLINT: meant to convert
    llp::Impairment impairment;
    impairment.seed = seed;
    impairment.drop = drop;
    impairment.reorder = reorder;
    impairment.duplicate = duplicate;
    impairment.corrupt = corrupt;
    impairment.truncate = truncate;
    return impairment;
  }
};

inline PartyOptions rd_options(PartyOptions options = {}) {
  options.type = QpType::rd;
  return options;
}

struct RdScene {
  explicit RdScene(const Trouble& impairment = {}, const PartyOptions& options = {},
                   const llp::MemoryOptions& network = {.queue_datagrams = 16384})
      : world(network),
        a_device(&world.add_device(wrap(impairment))),
        b_device(&world.add_device(wrap(impairment))),
        a(*a_device, rd_options(options)),
        b(*b_device, rd_options(options)) {}

  World::Wrap wrap(const llp::Impairment& impairment) {
    return [this, impairment](World::Link link) -> World::Link {
      llp::Impairment own = impairment;
      own.seed += ++links;  // each direction loses its own
      return std::make_unique<llp::ImpairedDatagramLink>(
          std::move(link), own, world.clock,
          [this](ConstBytes, llp::Verdict what) { dropped += what == llp::Verdict::dropped; });
    };
  }

  /// Lets time pass until `done`, a little at a time; false if that takes longer than `limit`.
  template <class Done>
  bool run(Done&& done, Duration limit = 600s, Duration step = 1ms) {
    const Time end = world.clock.now() + limit;
    for (;;) {
      world.settle();
      if (done()) return true;
      if (world.clock.now() >= end) return false;
      world.clock.advance(step);
    }
  }

  /// The next `count` completions of a queue.
  std::vector<WorkCompletion> collect(CompletionQueue& cq, size_t count, Duration limit = 600s) {
    std::vector<WorkCompletion> all;
    run(
        [&] {
          for (WorkCompletion& one : drain(cq)) all.push_back(std::move(one));
          return all.size() >= count;
        },
        limit);
    return all;
  }

  uint64_t links = 0;
  uint64_t dropped = 0;
  World world;
  Device* a_device;
  Device* b_device;
  Party a;
  Party b;
};

}  // namespace diwarp::test
