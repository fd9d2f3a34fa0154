// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/request_pace.h"

#include <future>

#include "support/catch.h"

using namespace diwarp::compat;
using namespace std::chrono_literals;

namespace {

constexpr auto kLong = 100s;  // a case that waits so long has failed
const int first = 0;
const int second = 0;

}  // namespace

TEST_CASE("the next event waits until the request before is begun with") {
  RequestPace pace(kLong);
  pace.wait();  // there was none
  pace.fetched(&first);
  auto waiting = std::async(std::launch::async, [&] { pace.wait(); });
  pace.begun(&second);
  CHECK(waiting.wait_for(20ms) == std::future_status::timeout);
  pace.begun(&first);
  waiting.get();
}

TEST_CASE("only the latest request is waited for") {
  RequestPace pace(kLong);
  pace.fetched(&first);
  pace.fetched(&second);
  pace.begun(&second);
  pace.wait();
}

TEST_CASE("a program that lets the time pass does not wait again") {
  RequestPace pace(20ms);
  pace.fetched(&first);
  pace.wait();
  pace.fetched(&second);
  for (int i = 0; i < 100'000; ++i) pace.wait();  // longer than any test may take, if each waited
}
