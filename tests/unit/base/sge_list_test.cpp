// SPDX-License-Identifier: Apache-2.0
#include "diwarp/sge.h"

#include <array>
#include <initializer_list>
#include <list>
#include <span>
#include <type_traits>
#include <vector>

#include "diwarp/connect_options.h"
#include "diwarp/types.h"
#include "support/catch.h"

using namespace diwarp;

namespace {

// --- What must not compile, as it would dangle once the request has a name.

template <class Request, class Range>
concept TakesSges = requires(Request& request, Range&& range) {
  request.sges = std::forward<Range>(range);
};
template <class Request>
concept TakesFive = requires(Request& request, Sge sge) {
  request.sges = {sge, sge, sge, sge, sge};
};
template <class Request>
concept TakesFour = requires(Request& request, Sge sge) {
  request.sges = {sge, sge, sge, sge};
};

template <class Request>
constexpr bool refuses_what_dangles() {
  static_assert(!TakesSges<Request, std::vector<Sge>>);
  static_assert(!TakesSges<Request, const std::vector<Sge>>);
  static_assert(!TakesSges<Request, std::array<Sge, 2>>);
  static_assert(!TakesSges<Request, std::initializer_list<Sge>>);
  static_assert(!TakesFive<Request>);
  return true;
}
template <class Request>
constexpr bool takes_what_is_safe() {
  static_assert(TakesSges<Request, Sge> && TakesSges<Request, const Sge&>);
  static_assert(TakesSges<Request, std::vector<Sge>&> &&
                TakesSges<Request, const std::vector<Sge>&>);
  static_assert(TakesSges<Request, std::array<Sge, 9>&> && TakesSges<Request, Sge(&)[9]>);
  static_assert(TakesSges<Request, std::span<Sge>> && TakesSges<Request, std::span<const Sge>>);
  static_assert(TakesSges<Request, std::span<Sge, 2>> && TakesSges<Request, SgeList>);
  static_assert(TakesFour<Request>);
  return true;
}
static_assert(refuses_what_dangles<SendWorkRequest>() && takes_what_is_safe<SendWorkRequest>());
static_assert(refuses_what_dangles<ReceiveWorkRequest>() &&
              takes_what_is_safe<ReceiveWorkRequest>());
static_assert(refuses_what_dangles<WriteRecordWorkRequest>() &&
              takes_what_is_safe<WriteRecordWorkRequest>());
static_assert(refuses_what_dangles<ReadWorkRequest>() && takes_what_is_safe<ReadWorkRequest>());
static_assert(!std::is_constructible_v<SgeList, std::list<Sge>&>);
static_assert(!std::is_constructible_v<SgeList, std::vector<int>&>);

Sge sge(uint32_t length) { return {nullptr, length, 7}; }

std::vector<uint32_t> lengths(const SgeList& list) {
  std::vector<uint32_t> all;
  for (const Sge& one : list) all.push_back(one.length);
  return all;
}

using Lengths = std::vector<uint32_t>;

/// Overwrites what a finished statement may have left on the stack.
[[gnu::noinline]] void scribble() {
  std::array<volatile unsigned char, 4096> bytes;
  for (auto& byte : bytes) byte = 0xEE;
}

}  // namespace

TEST_CASE("SGEs that are written into a list live as long as it does") {
  SendWorkRequest send{.sges = {sge(1), sge(2)}};
  ReceiveWorkRequest receive;
  receive.sges = {sge(3)};
  SgeList one = sge(4);
  scribble();
  CHECK(lengths(send.sges) == Lengths{1, 2});
  CHECK(lengths(receive.sges) == Lengths{3});
  CHECK(lengths(one) == Lengths{4});
  send.sges = {sge(5), sge(6), sge(7)};
  CHECK(lengths(send.sges) == Lengths{5, 6, 7});
  send.sges = {sge(5), sge(6), sge(7), {nullptr, 8, 7}};
  CHECK(lengths(send.sges) == Lengths{5, 6, 7, 8});
  send.sges = {};
  CHECK(send.sges.empty());
}

TEST_CASE("a copy of a list has its own copy of what was written into the first") {
  std::vector<SendWorkRequest> requests;
  for (uint32_t i = 0; i < 20; ++i) requests.push_back({.sges = {sge(i), sge(100 + i)}});
  for (uint32_t i = 0; i < 20; ++i) CHECK(lengths(requests[i].sges) == Lengths{i, 100 + i});
  SgeList first = {sge(1), sge(2)};
  SgeList second = first;
  first = sge(3);
  CHECK(lengths(first) == Lengths{3});
  CHECK(lengths(second) == Lengths{1, 2});
  second = *&second;
  CHECK(lengths(second) == Lengths{1, 2});
}

TEST_CASE("a list points to a range that has a name, however long it is") {
  std::vector<Sge> many(64, sge(1));
  const SgeList all = many;
  CHECK(all.data() == many.data());
  CHECK(all.size() == 64);
  const SgeList copy = all;
  CHECK(copy.data() == many.data());
  const SgeList some(many.data(), 3);
  CHECK(some.data() == many.data());
  CHECK(some.size() == 3);
  const SendWorkRequest request{.sges = {&many[5], 1}};
  CHECK(request.sges.data() == &many[5]);
  CHECK(SgeList(std::span(many).first(2)).data() == many.data());
}

TEST_CASE("options keep a copy of their private data") {
  std::vector<std::byte> data(3, std::byte{7});
  ConnectOptions options{.private_data = data};
  const AcceptOptions accept{.private_data = std::vector<std::byte>(2, std::byte{1})};
  data.assign(3, std::byte{0});
  const ConnectOptions copy = options;
  CHECK(std::vector(copy.private_data.begin(), copy.private_data.end()) ==
        std::vector(3, std::byte{7}));
  CHECK(accept.private_data.size() == 2);
  options.private_data = std::as_bytes(std::span("ab"));
  CHECK(options.private_data.size() == 3);
  options.private_data = {};
  CHECK(options.private_data.size() == 0);
}
