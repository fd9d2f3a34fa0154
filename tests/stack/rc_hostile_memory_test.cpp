// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_hostile.h"

/// Each way to name memory that is not the peer's to use.
namespace diwarp::test {

namespace {

/// An STag of a region that is gone.
uint32_t stale_stag(Fortress& fortress) {
  std::vector<std::byte> memory(64);
  const MemoryRegion region(fortress.victim->pd, std::span(memory), kOpen);
  return region.rkey();
}

struct Place {
  std::string what;
  uint32_t stag;
  uint64_t offset;
  std::string as_write;    // the Terminate for a Write there
  std::string as_request;  // and for a Read or an atomic
};

constexpr size_t kMost = Fortress::kBytes;

/// Places of 8 bytes that the peer may not touch. The queue pair has to be there already.
std::vector<Place> forbidden(Fortress& fortress) {
  const uint32_t stag = fortress.stag();
  const uint64_t base = fortress.base();
  return {
      {"STag 0", 0, base, "1/1/0", "0/1/0"},
      {"unknown STag", stag ^ 0x00010000, base, "1/1/0", "0/1/0"},
      {"another key", stag ^ 1, base, "1/1/0", "0/1/0"},
      {"stale STag", stale_stag(fortress), base, "1/1/0", "0/1/0"},
      {"another protection domain", fortress.foreign->rkey(), fortress.foreign->base(), "1/1/2",
       "0/1/3"},
      {"no rights", fortress.closed->rkey(), fortress.closed->base(), "0/1/2", "0/1/2"},
      {"before the region", stag, base - 8, "1/1/1", "0/1/1"},
      {"over its beginning", stag, base - 1, "1/1/1", "0/1/1"},
      {"over its end", stag, base + kMost - 7, "1/1/1", "0/1/1"},
      {"behind it", stag, base + kMost, "1/1/1", "0/1/1"},
      {"offset 0", stag, 0, "1/1/1", "0/1/1"},
      {"the last offsets", stag, UINT64_MAX - 7, "1/1/1", "0/1/1"},
      {"over the end of 64 bits", stag, UINT64_MAX - 6, "1/1/3", "0/1/4"},
      {"at the end of 64 bits", stag, UINT64_MAX, "1/1/3", "0/1/4"},
  };
}

size_t count_of_places() {
  Fortress fortress;
  fortress.face();
  return forbidden(fortress).size();
}

}  // namespace

TEST_CASE("A peer's Write to each kind of place that is not open is refused") {
  Fortress fortress;
  for (size_t i = 0; i < count_of_places(); ++i) {
    fortress.face();
    const Place place = forbidden(fortress)[i];
    check_refused(fortress, place.what, write_of(place.stag, place.offset, 8), place.as_write,
                  Shown::ddp_header);
  }
}

TEST_CASE("A peer's Read from each kind of place that is not open is refused") {
  Fortress fortress;
  for (size_t i = 0; i < count_of_places(); ++i) {
    fortress.face();
    const Place place = forbidden(fortress)[i];
    check_refused(fortress, place.what, read_of(place.stag, place.offset, 8), place.as_request,
                  Shown::request);
  }
}

TEST_CASE("A peer's atomic operation on each kind of place that is not open is refused") {
  Fortress fortress;
  for (size_t i = 0; i < count_of_places(); ++i) {
    fortress.face();
    const Place place = forbidden(fortress)[i];
    check_refused(fortress, place.what, atomic_of(place.stag, place.offset), place.as_request,
                  Shown::request);
  }
}

TEST_CASE("A peer's Read of more bytes than the region has is refused at any length") {
  Fortress fortress;
  for (const uint32_t length : {uint32_t{kMost + 1}, 0x80000000U, 0xFFFFFFFFU}) {
    fortress.face();
    check_refused(fortress, "length " + std::to_string(length),
                  read_of(fortress.stag(), fortress.base(), length), "0/1/1", Shown::request);
  }
}

TEST_CASE("A peer's later segments are checked like the first, which alone is written") {
  Fortress fortress;
  fortress.face();
  Wire first = write_of(fortress.stag(), fortress.base() + kMost - 16, 16);
  first.last = false;
  fortress.send(first);
  const Wire second = write_of(fortress.stag(), fortress.base() + kMost, 1);
  fortress.send(second);
  const SeenTerminate terminate = fortress.seen_terminate();
  CHECK(terminate.code == "1/1/1");
  CHECK(same(terminate.headers, first_of(to_ulpdu(second), 14)));
  CHECK(same(fortress.victim->bytes(0, kMost - 16), first_of(Fortress::before(), kMost - 16)));
  CHECK(same(fortress.victim->bytes(kMost - 16, 16), std::vector<std::byte>(16, std::byte{0xEE})));
  fortress.check_bystanders();
}

TEST_CASE("A peer's atomic operation that is not one of the known is refused") {
  Fortress fortress;
  for (const uint32_t operation : {1U, 3U, 7U, 15U}) {
    fortress.face();
    check_refused(fortress, "operation " + std::to_string(operation),
                  atomic_of(fortress.stag(), fortress.base(), operation), "0/2/6", Shown::request);
  }
}

TEST_CASE("A peer's atomic operation on an address that is not aligned is refused") {
  Fortress fortress;
  for (size_t misalignment = 1; misalignment < 8; ++misalignment) {
    fortress.face();
    check_refused(fortress, "by " + std::to_string(misalignment),
                  atomic_of(fortress.stag(), fortress.base() + misalignment), "0/2/7",
                  Shown::request);
  }
}

TEST_CASE("A peer cannot invalidate what is not its own") {
  Fortress fortress;
  const auto attack = [&](const std::string& what, uint32_t stag) {
    const Wire send{.opcode = 4, .word = stag};
    check_refused(fortress, what, send, "0/1/9", Shown::ddp_header);
    CHECK(fortress.victim->mr->valid());
    CHECK(fortress.foreign->valid());
  };
  fortress.face();
  attack("unknown STag", fortress.stag() ^ 0x00010000);
  fortress.face();
  attack("stale STag", stale_stag(fortress));
  fortress.face();
  attack("a region that does not allow it", fortress.stag());
  fortress.face();
  attack("a region of another protection domain", fortress.foreign->rkey());
  std::vector<std::byte> memory(64);
  const MemoryRegion invalidable(fortress.other_domain, std::span(memory),
                                 kOpen | Access::remote_invalidate);
  fortress.face();
  attack("one that allows it to peers of that domain", invalidable.rkey());
  CHECK(invalidable.valid());
}

TEST_CASE("A peer's responses that nobody asked for are refused") {
  Fortress fortress;
  fortress.face();
  Wire response = write_of(fortress.stag(), fortress.base(), 8);
  response.opcode = 2;
  check_refused(fortress, "Read Response", response, "1/1/0", Shown::ddp_header);
  fortress.face();
  check_refused(fortress, "Atomic Response",
                Wire{.opcode = 11, .queue = 3, .body = std::vector<std::byte>(12)}, "1/2/2",
                Shown::ddp_header);
}

}  // namespace diwarp::test
