// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/interval_set.h"
#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// Reads over links that lose, repeat and reorder: the bytes that the link let through, and no
/// more, are valid.

namespace {

/// The bytes of a Read that came, by what both links let through.
Ranges let_through(const ReadScene& scene) {
  std::map<uint32_t, uint64_t> begins;  // of parts, by sink; less the offset that they repeat
  for (const Segment& request : scene.from_reader.requests())
    begins[request.sink_stag] = request.source_offset - scene.source.base() - request.sink_offset;
  IntervalSet came(100000);
  for (const Datagram& datagram : scene.from_target.passed) {
    if (!is_response(datagram)) continue;
    const Segment segment = read_segment(datagram);
    const uint64_t begin = begins.at(segment.stag) + segment.tagged_offset;
    came.insert(begin, begin + segment.payload.size());
  }
  Ranges ranges;
  for (const IntervalSet::Range& range : came)
    ranges.push_back({range.begin, range.end - range.begin});
  return ranges;
}

/// Whether the reader's memory has the target's bytes in these ranges, and is otherwise as it was.
bool holds(const ReadScene& scene, const Ranges& ranges) {
  std::vector<std::byte> expected(scene.reader.memory.size());
  for (const auto& [offset, length] : ranges)
    std::copy_n(scene.target.memory.begin() + static_cast<ptrdiff_t>(offset), length,
                expected.begin() + static_cast<ptrdiff_t>(offset));
  return expected == scene.reader.memory;
}

WorkCompletion finish(ReadScene& scene) {
  for (int step = 0; step < 100000; ++step) {
    const auto completions = drain(scene.reader.send_cq);
    if (!completions.empty()) return completions.at(0);
    scene.from_target.link->flush();  // what nothing overtakes any more
    scene.world.advance(5ms);
  }
  FAIL("the Read never ends");
  return {};
}

ReadSceneOptions lossy(double drop, double reorder, uint64_t seed, uint32_t retries) {
  ReadSceneOptions options;
  options.reader.memory = options.target.memory = 4 << 20;
  options.reader.datagram.read.retries = retries;
  options.from_reader = {.seed = seed, .drop = drop, .drop_if = {}};
  options.from_target = {.seed = seed + 1,
                         .drop = drop,
                         .duplicate = reorder,
                         .reorder = reorder,
                         .reorder_depth = 5,
                         .drop_if = {}};
  return options;
}

}  // namespace

TEST_CASE("the valid bytes of a Read are those that the link let through, at each rate of loss") {
  const double drop = GENERATE(0.0, 0.001, 0.005, 0.01, 0.05, 0.2);
  const size_t size = GENERATE(as<size_t>{}, 1, 1000, 100000, 1 << 20, 4 << 20);
  const double reorder = GENERATE(0.0, 0.02);
  CAPTURE(drop, size, reorder);
  ReadScene scene(lossy(drop, reorder, size, 0));
  REQUIRE_FALSE(scene.post(size));
  const WorkCompletion completion = finish(scene);
  const Ranges came = let_through(scene);
  CHECK(valid_ranges(completion) == came);
  CHECK(completion.validity.length() == size);
  CHECK(completion.validity.complete() == (completion.status == WcStatus::success));
  CHECK(completion.valid_bytes == completion.validity.valid_bytes());
  CHECK(holds(scene, came));
  if (drop == 0) CHECK(completion.status == WcStatus::success);
}

TEST_CASE("a Read with retries brings everything at each rate of loss, and nothing twice") {
  const double drop = GENERATE(0.001, 0.01, 0.05, 0.2);
  const size_t size = GENERATE(as<size_t>{}, 1, 100000, 4 << 20);
  CAPTURE(drop, size);
  ReadScene scene(lossy(drop, 0, size + 100, 100));
  REQUIRE_FALSE(scene.post(size));
  const WorkCompletion completion = finish(scene);
  CHECK(completion.status == WcStatus::success);
  CHECK(holds(scene, {{0, size}}));
  uint64_t came = 0;
  for (const Datagram& datagram : scene.from_target.passed)
    if (is_response(datagram)) came += read_segment(datagram).payload.size();
  CHECK(came == size);  // gaps alone were asked for
}

TEST_CASE("a long Read loses at five percent loss what the link loses, and no part for its end") {
  ReadScene scene(lossy(0.05, 0, 5, 0));
  scene.get_acquainted();
  uint64_t valid = 0;
  for (int i = 0; i < 20; ++i) {
    REQUIRE_FALSE(scene.post(4 << 20));
    valid += finish(scene).valid_bytes;
  }
  // A request is lost with what it asked for, at the same rate.
  const double share = static_cast<double>(valid) / (20.0 * (4 << 20));
  CHECK(share > 0.95 * 0.95 - 0.03);
}
