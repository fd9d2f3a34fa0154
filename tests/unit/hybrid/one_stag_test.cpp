// SPDX-License-Identifier: Apache-2.0

#include "hybrid/one_stag.h"

#include <memory>
#include <set>

#include "support/catch.h"

using namespace diwarp;

namespace {

/// What both halves made.
struct Made {
  std::shared_ptr<STag> software;
  std::shared_ptr<STag> hardware;
};

/// Hardware gives the STags 1, 2, 3 and so on, of which those that live must differ.
struct Halves {
  std::set<STag> taken = {};  // in software
  bool refuses = false;       // software, whatever the STag
  STag last = 0;
  int software_tries = 0;

  Made make() {
    return hybrid::under_one_stag<Made>(
        [&] { return std::make_shared<STag>(++last); }, [](const STag& made) { return made; },
        [&](std::optional<STag> stag) {
          ++software_tries;
          if (refuses || (stag && taken.contains(*stag)))
            throw Error(make_error_code(Errc::invalid_argument), "refused");
          return std::make_shared<STag>(stag.value_or(0));
        });
  }
};

std::error_code refusal(Halves& halves) {
  try {
    halves.make();
  } catch (const Error& error) {
    return error.code();
  }
  return {};
}

}  // namespace

TEST_CASE("one STag: where software has it already, hardware gives another") {
  Halves halves{.taken = {1, 2}};
  const Made made = halves.make();
  CHECK(*made.hardware == 3);
  CHECK(*made.software == 3);
}

TEST_CASE("one STag: hardware is asked a few times, then there are no resources") {
  Halves halves;
  for (STag stag = 0; stag < 1000; ++stag) halves.taken.insert(stag);
  CHECK(refusal(halves) == Errc::no_resources);
  CHECK(halves.last == hybrid::kStagTries);
}

TEST_CASE("one STag: what software refuses under any STag is told as software tells it") {
  Halves halves{.refuses = true};
  CHECK(refusal(halves) == Errc::invalid_argument);
  CHECK(halves.last == 1);
}
