// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "base/random.h"
#include "ddp/stag_table.h"

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

/// What every region of this test holds, so that a reader can tell a freed or torn one.
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
