// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_termination.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;

namespace fault = rdmap::fault;

namespace {

template <size_t Size>
std::array<std::byte, Size> counted() {
  std::array<std::byte, Size> bytes;
  std::ranges::generate(bytes, [n = 0]() mutable { return static_cast<std::byte>(n++); });
  return bytes;
}

}  // namespace

TEST_CASE("rc termination: of a long segment the longest headers are kept, and its length") {
  const auto ulpdu = counted<100>();
  RcTermination termination;
  CHECK_FALSE(termination.ended());
  CHECK_FALSE(termination.end(RcEnd::protocol_error, fault::kInvalidMsn, ulpdu));
  CHECK(termination.reason() == RcEnd::protocol_error);
  CHECK(termination.code() == fault::kInvalidMsn);
  // The header of an untagged segment, and an atomic request (RFC 7306 section 5.2.1).
  const ConstBytes kept = termination.offending();
  CHECK(kept.size() == 18 + 52);
  CHECK(std::ranges::equal(kept, ConstBytes(ulpdu).first(kept.size())));
  CHECK(termination.offending_length() == 100);
}

TEST_CASE("rc termination: a segment of which the header is given has the length of all of it") {
  RcTermination termination;
  termination.end(RcEnd::protocol_error, fault::kTaggedInvalidStag, counted<14>());
  termination.set_offending_length(9000);
  CHECK(termination.offending().size() == 14);
  CHECK(termination.offending_length() == 9000);
  // No segment is to blame for this one.
  termination.end(RcEnd::bad_receive, fault::kLocalCatastrophic, {});
  termination.set_offending_length(9000);
  CHECK(termination.offending().empty());
  CHECK(termination.offending_length() == 0);
}

TEST_CASE("rc termination: nothing of it stays for the next stream") {
  RcTermination termination;
  termination.end(RcEnd::protocol_error, fault::kInvalidMsn, counted<18>());
  termination.start();
  CHECK_FALSE(termination.ended());
  CHECK_FALSE(termination.code());
  CHECK(termination.offending().empty());
}
