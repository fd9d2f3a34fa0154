// SPDX-License-Identifier: Apache-2.0
#include "diwarp/error.h"

#include <cerrno>
#include <set>
#include <string>

#include "support/catch.h"

using diwarp::Errc;

TEST_CASE("every error code has its own message and an errno condition") {
  std::set<std::string> messages;
  for (int value = 1; value <= static_cast<int>(Errc::loopback_device); ++value) {
    const std::error_code code = static_cast<Errc>(value);
    CHECK(code.category().name() == std::string("diwarp"));
    CHECK(code.message().ends_with('.'));
    CHECK(code.default_error_condition().category() == std::generic_category());
    messages.insert(code.message());
  }
  CHECK(messages.size() == static_cast<size_t>(Errc::loopback_device));
}

TEST_CASE("error codes compare equal to the errno values that verbs programs know") {
  const auto is = [](Errc code, int value) {
    return std::error_code(code) == std::error_condition(value, std::generic_category());
  };
  CHECK(is(Errc::queue_full, ENOMEM));
  CHECK(is(Errc::invalid_state, EINVAL));
  CHECK(is(Errc::message_too_large, EMSGSIZE));
  CHECK(is(Errc::unsupported_operation, EOPNOTSUPP));
  CHECK(is(Errc::device_gone, ENODEV));
  CHECK(is(Errc::moved_from, EBADF));
  CHECK(is(Errc::timed_out, ETIMEDOUT));
  CHECK(is(Errc::rejected, ECONNREFUSED));
  CHECK(is(Errc::connection_lost, ECONNRESET));
  CHECK(is(Errc::protocol_error, EPROTO));
  CHECK(is(Errc::address_in_use, EADDRINUSE));
  CHECK_FALSE(is(Errc::timed_out, ENODEV));
  CHECK(std::error_code(Errc::timed_out) == std::errc::timed_out);
}

TEST_CASE("an unknown value of the category is named, not misread") {
  for (int value : {-1, 0, 18, 1000}) {
    const std::error_code code(value, diwarp::error_category());
    CHECK(code.message().find(std::to_string(value)) != std::string::npos);
    CHECK(code.default_error_condition().category() == diwarp::error_category());
  }
}

TEST_CASE("an error carries its code and its message") {
  const diwarp::Error error(Errc::device_gone, "No device 192.0.2.1");
  CHECK(error.code() == Errc::device_gone);
  CHECK(std::string(error.what()).starts_with("No device 192.0.2.1"));
  CHECK_THROWS_AS(throw error, std::system_error);
}
