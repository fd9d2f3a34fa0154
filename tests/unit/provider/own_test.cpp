// SPDX-License-Identifier: Apache-2.0
#include "provider/own.h"

#include "provider/memory.h"
#include "support/catch.h"

namespace diwarp::provider {
namespace {

class Tag : public SteeringTag {
 public:
  STag stag() const override { return 1; }
  SteeringTagAttributes query() const override { return {}; }
};
class OneProviders final : public Tag {};
class Others final : public Tag {};

}  // namespace

TEST_CASE("an object of the provider's own is had as its class, by reference and by pointer") {
  const auto tag = std::make_shared<OneProviders>();
  const std::shared_ptr<SteeringTag> object = tag;
  CHECK(&own<OneProviders>(*object, "window") == tag.get());
  CHECK(own_pointer<OneProviders>(object, "window") == tag);
  CHECK(own_pointer<OneProviders>(std::shared_ptr<SteeringTag>(), "window") == nullptr);
}

TEST_CASE("an object of another provider is refused, and the message names it") {
  const std::shared_ptr<SteeringTag> object = std::make_shared<Others>();
  const auto refused = [](auto&& call) {
    try {
      call();
    } catch (const Error& error) {
      CHECK(error.code() == Errc::invalid_argument);
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string by_reference = refused([&] { own<OneProviders>(*object, "window"); });
  const std::string by_pointer = refused([&] { own_pointer<OneProviders>(object, "window"); });
  CHECK(by_reference.find("The window belongs to a device of another kind") != std::string::npos);
  CHECK(by_pointer == by_reference);
}

}  // namespace diwarp::provider
