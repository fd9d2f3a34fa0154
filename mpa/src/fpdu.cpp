// SPDX-License-Identifier: Apache-2.0
#include "mpa/fpdu.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "base/byte_order.h"

namespace diwarp::mpa {
namespace {

constexpr size_t kMaxFpdu = 65536;
constexpr size_t kFraming = kLengthBytes + kCrcBytes;

static_assert(fpdu_bytes(kMinMulpdu) < kMaxFpdu && kMaxFpdu - kFraming <= kMaxUlpdu);

constexpr std::array<std::byte, kMaxPad> kZeros{};

Deframed incomplete(size_t needed) {
  return {.status = DeframeStatus::incomplete, .needed = needed};
}

}  // namespace

size_t mulpdu(size_t emss) {
  const size_t usable = std::min(emss, kMaxFpdu) / 4 * 4;  // an FPDU is a multiple of four
  return std::max(usable, kMinMulpdu + kFraming) - kFraming;
}

void encode_length(size_t ulpdu, Bytes out) {
  assert(ulpdu <= kMaxUlpdu && out.size() >= kLengthBytes);
  store_be(out.data(), static_cast<uint16_t>(ulpdu));
}

size_t encode_trailer(size_t ulpdu, const Crc32c* crc, Bytes out) {
  const size_t pad = pad_bytes(ulpdu);
  assert(out.size() >= pad + kCrcBytes);
  std::memset(out.data(), 0, pad + kCrcBytes);
  if (crc != nullptr) {
    Crc32c whole = *crc;
    whole.update(ConstBytes(kZeros).first(pad));
    store_crc32c(out.data() + pad, whole.value());
  }
  return pad + kCrcBytes;
}

Deframed deframe(ConstBytes stream, bool check_crc) {
  if (stream.size() < kLengthBytes) return incomplete(fpdu_bytes(0));
  const size_t length = load_be<uint16_t>(stream.data());
  const size_t whole = fpdu_bytes(length);
  if (stream.size() < whole) return incomplete(whole);

  const size_t covered = whole - kCrcBytes;
  if (check_crc && crc32c(stream.first(covered)) != load_crc32c(stream.data() + covered)) {
    return {.status = DeframeStatus::bad_crc};
  }
  return {.status = DeframeStatus::fpdu,
          .ulpdu = stream.subspan(kLengthBytes, length),
          .consumed = whole};
}

}  // namespace diwarp::mpa
