// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>

namespace diwarp {

/// Steering tag: 32 random bits that name a registered memory region (RFC 5040 section 2.1). The
/// same value is the region's local and remote key.
using STag = uint32_t;

/// Scatter/gather element: `length` bytes at `address`, inside the region named by `lkey`.
struct Sge {
  void* address = nullptr;
  uint32_t length = 0;
  STag lkey = 0;
};

class SgeList;

/// A range of SGEs that a list may point to: an array or vector that has a name, or a span.
template <class Range>
concept NamedSges =
    !std::same_as<std::remove_cvref_t<Range>, SgeList> && std::ranges::contiguous_range<Range> &&
    std::ranges::sized_range<Range> && std::ranges::borrowed_range<Range> &&
    std::same_as<std::ranges::range_value_t<Range>, Sge>;

/// The SGEs of a work request. Up to kOwned of them may be written into the list, which keeps them:
/// {a}, {a, b}. More stand in a range that has a name, to which the list points until the request
/// is posted. A temporary range does not compile, as it would be gone by then.
class SgeList {
 public:
  static constexpr size_t kOwned = 4;

  SgeList() {}  // NOLINT(modernize-use-equals-default): leaves owned_ as it is
  SgeList(const Sge* sges, size_t count) : list_(sges, count) {}
  template <NamedSges Range>
  SgeList(Range&& range) : list_(range) {}  // NOLINT: meant to convert
  SgeList(const Sge& a) { keep({a}); }      // NOLINT: meant to convert
  SgeList(const Sge& a, const Sge& b) { keep({a, b}); }
  SgeList(const Sge& a, const Sge& b, const Sge& c) { keep({a, b, c}); }
  SgeList(const Sge& a, const Sge& b, const Sge& c, const Sge& d) { keep({a, b, c, d}); }

  SgeList(const SgeList& other) { copy(other); }
  SgeList& operator=(const SgeList& other) {
    if (this != &other) copy(other);
    return *this;
  }

  const Sge* data() const { return list_.data(); }
  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  const Sge& operator[](size_t index) const { return list_[index]; }

 private:
  void keep(std::span<const Sge> sges) {
    std::uninitialized_copy(sges.begin(), sges.end(), owned_);
    list_ = {owned_, sges.size()};
  }
  void keep(std::initializer_list<Sge> sges) { keep(std::span(sges.begin(), sges.size())); }
  void copy(const SgeList& other) {
    if (other.data() == other.owned_)
      keep(other.list_);
    else
      list_ = other.list_;
  }

  std::span<const Sge> list_;
  union {
    Sge owned_[kOwned];  // as many as list_ has, where that points here
  };
};

}  // namespace diwarp
