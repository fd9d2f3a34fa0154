// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/random.h"
#include "ddp/stag_table.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::ddp;

namespace {

/// Readers announce their sections; waiting for quiescence means to see each of them outside of a
/// section, or in a later one.
class Sections {
 public:
  static constexpr size_t kReaders = 3;

  void enter(size_t reader) { counts_[reader].fetch_add(1); }  // odd: inside
  void leave(size_t reader) { counts_[reader].fetch_add(1); }

  void wait() {
    for (std::atomic<uint64_t>& count : counts_) {
      const uint64_t seen = count.load();
      while (seen % 2 == 1 && count.load() == seen) std::this_thread::yield();
    }
  }

 private:
  std::array<std::atomic<uint64_t>, kReaders> counts_{};
};

/// The contents of every region of this test, so that a reader can tell a freed or torn one.
Region patterned(uint64_t n) { return {.base = n, .length = ~n}; }
bool intact(const Region& region) { return region.length == ~region.base; }

}  // namespace

TEST_CASE("readers find intact regions while writers insert, erase and grow the table") {
  constexpr size_t kShared = 64;
  Sections sections;
  std::atomic<uint32_t> draws{1};
  STagTable table([&] { sections.wait(); }, [&] { return draws.fetch_add(1) * 2654435761u; });
  const STag permanent = table.insert(patterned(4711));
  std::array<std::atomic<STag>, kShared> published{};
  std::atomic<bool> done{false};
  std::atomic<size_t> reading{0};
  std::atomic<uint64_t> faults{0};

  std::vector<std::thread> readers;
  for (size_t reader = 0; reader < Sections::kReaders; ++reader) {
    readers.emplace_back([&, reader] {
      Random random(reader);
      reading.fetch_add(1);
      while (!done.load()) {
        sections.enter(reader);
        const Region* always = table.find(permanent);
        if (always == nullptr || always->base != 4711) faults.fetch_add(1);
        for (int i = 0; i < 20; ++i) {
          const STag stag = published[random.below(kShared)].load();
          const Region* region = table.find(stag);
          if (region != nullptr && (region->stag != stag || !intact(*region))) faults.fetch_add(1);
        }
        sections.leave(reader);
        std::this_thread::yield();
      }
    });
  }

  std::vector<std::thread> writers;
  for (size_t writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      Random random(100 + writer);
      while (reading.load() != Sections::kReaders) std::this_thread::yield();
      for (uint64_t round = 0; round < 20000; ++round) {
        const size_t slot = writer * kShared / 2 + random.below(kShared / 2);
        const STag old = published[slot].load();
        published[slot].store(table.insert(patterned(round)));
        if (old != 0 && !table.erase(old)) faults.fetch_add(1);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done.store(true);
  for (std::thread& reader : readers) reader.join();

  CHECK(faults.load() == 0);
  size_t live = 1;
  for (const auto& stag : published) live += stag.load() != 0 ? 1 : 0;
  CHECK(table.size() == live);
}

TEST_CASE("an engine binds and invalidates windows while others erase them and their regions") {
  constexpr uint32_t kDomain = 1;
  constexpr uint32_t kQueuePair = 2;
  constexpr Access kBindable = Access::local_write | Access::window_bind;
  Sections sections;
  std::atomic<uint32_t> draws{1};
  STagTable table([&] { sections.wait(); }, [&] { return draws.fetch_add(1) * 2654435761u; });
  std::array<std::byte, 64> memory{};
  std::array<std::atomic<STag>, 8> regions{};
  std::array<std::atomic<STag>, 8> windows{};
  const auto add = [&](bool region) {
    return table.insert({.protection_domain = kDomain,
                         .access = region ? kBindable : Access::none,
                         .memory = region ? memory.data() : nullptr,
                         .length = region ? memory.size() : 0,
                         .kind = region ? EntryKind::region : EntryKind::window});
  };
  for (auto& stag : regions) stag.store(add(true));
  for (auto& stag : windows) stag.store(add(false));
  std::atomic<bool> done{false};
  std::atomic<bool> engine_runs{false};
  std::atomic<uint64_t> bound{0};

  std::thread engine([&] {
    Random random(1);
    while (!done.load()) {
      sections.enter(0);
      for (int i = 0; i < 20; ++i) {
        const STag window = windows[random.below(windows.size())].load();
        const STag region = regions[random.below(regions.size())].load();
        const MemoryBinding binding{.stag = window,
                                    .region = region,
                                    .address = memory.data(),
                                    .length = 8,
                                    .access = Access::remote_write};
        if (table.bind(binding, kDomain, kQueuePair) == RegionFault::none) bound.fetch_add(1);
        if (random.chance(0.5)) table.invalidate(window, kDomain, kQueuePair, false);
      }
      sections.leave(0);
      engine_runs.store(true);
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> writers;
  for (const bool region : {false, true}) {
    writers.emplace_back([&, region] {
      Random random(region ? 10 : 11);
      while (!engine_runs.load()) std::this_thread::yield();
      auto& stags = region ? regions : windows;
      for (int round = 0; round < 3000; ++round) {
        auto& stag = stags[random.below(stags.size())];
        const STag old = stag.load();
        stag.store(add(region));
        table.erase(old);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done.store(true);
  engine.join();

  CHECK(bound.load() > 0);
  for (auto& stag : windows) CHECK(table.erase(stag.load()));
  for (auto& stag : regions) {  // every count went back to zero
    CHECK(table.invalidate(stag.load(), kDomain, kQueuePair, false) == RegionFault::none);
  }
  CHECK(table.size() == regions.size());
}
