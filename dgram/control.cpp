// SPDX-License-Identifier: Apache-2.0
#include "dgram/control.h"

#include <algorithm>
#include <cassert>

#include "base/byte_order.h"

namespace diwarp::dgram {
namespace {

constexpr size_t kNonceAt = kControlHeaderBytes;
constexpr size_t kCookieAt = kNonceAt + sizeof(uint64_t);
static_assert(kCookieAt + sizeof(Cookie) == kChallengeBytes);

ParsedControl dropped(Counter reason) { return {.drop_reason = reason}; }

ParsedControl parse_challenge(ControlType type, ConstBytes body) {
  if (body.size() < kChallengeBytes) return dropped(Counter::drop_truncated);  // guard(datagram)
  if (body.size() > kChallengeBytes) return dropped(Counter::drop_control);    // guard(datagram)
  ParsedControl parsed{.valid = true, .type = type};
  parsed.challenge.nonce = load_be<uint64_t>(body.data() + kNonceAt);
  std::copy_n(body.begin() + kCookieAt, sizeof(Cookie), parsed.challenge.cookie.begin());
  return parsed;
}

}  // namespace

size_t encode_control_header(ControlType type, Bytes out) {
  assert(out.size() >= kControlHeaderBytes);
  std::fill_n(out.begin(), kControlHeaderBytes, std::byte{0});
  out[0] = static_cast<std::byte>(type);
  return kControlHeaderBytes;
}

size_t encode_challenge(ControlType type, const Challenge& challenge, Bytes out) {
  assert(out.size() >= kChallengeBytes);
  encode_control_header(type, out);
  store_be(out.data() + kNonceAt, challenge.nonce);
  std::copy(challenge.cookie.begin(), challenge.cookie.end(), out.begin() + kCookieAt);
  return kChallengeBytes;
}

ParsedControl parse_control(ConstBytes body) {
  // guard(datagram)
  if (body.size() < kControlHeaderBytes) return dropped(Counter::drop_truncated);
  const auto type = std::to_integer<uint8_t>(body[0]);
  const bool known = type >= static_cast<uint8_t>(ControlType::challenge) &&
                     type <= static_cast<uint8_t>(ControlType::error);
  if (!known) return dropped(Counter::drop_control);  // guard(datagram)
  const ConstBytes reserved = body.subspan(1, kControlHeaderBytes - 1);
  // guard(datagram): one != std::byte{0} => false
  if (std::ranges::any_of(reserved, [](std::byte one) { return one != std::byte{0}; }))
    return dropped(Counter::drop_reserved);
  if (static_cast<ControlType>(type) != ControlType::error)
    return parse_challenge(static_cast<ControlType>(type), body);
  return {.valid = true, .type = ControlType::error, .rest = body.subspan(kControlHeaderBytes)};
}

}  // namespace diwarp::dgram
