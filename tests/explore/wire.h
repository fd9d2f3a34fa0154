// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "llp/datagram_link.h"

namespace diwarp::explore {

/// The two ends of an exploration, A and B.
inline constexpr size_t kSides = 2;
constexpr size_t other(size_t side) { return 1 - side; }
constexpr char name_of_side(size_t side) { return side == 0 ? 'A' : 'B'; }

/// The outcome of a datagram.
enum class Fate : uint8_t {
  deliver,
  drop,
  twice,   ///< delivered, and once more at once
  swap,    ///< delivered after the next one to the same end, or when the wire falls silent
  late,    ///< delivered when the ends have waited for it and sent something more
  echo,    ///< delivered, and once more as `late`
  outage,  ///< dropped, and so is all else until the wire falls silent
};
inline constexpr size_t kFates = 7;
std::string_view to_string(Fate fate);

/// A datagram on its way.
struct Datagram {
  uint32_t number = 0;  ///< of all that were sent, from 1 on
  size_t from = 0;      ///< the end that sent it
  Address to = {};
  std::vector<std::byte> bytes = {};
  bool decided = false;   ///< its fate is: it is delivered next
  uint32_t silences = 0;  ///< of the wire, when it was put aside
};

/// Stands between the links of the two ends and the network in memory: keeps what is sent, and
/// hands it on one by one as it is told. It knows nothing of what datagrams contain. For one
/// thread.
class Wire {
 public:
  /// Decorates the link of one end, which may be opened anew later.
  std::unique_ptr<llp::DatagramLink> attach(size_t side, std::unique_ptr<llp::DatagramLink> link);

  /// As it was at first, but for the links.
  void reset();
  /// Whether what is sent waits here for its fate, or goes on at once (as at first).
  void hold(bool held) { holds_ = held; }
  /// The state of datagrams that are too long.
  enum class Known : uint8_t {
    limit,    ///< the links tell how long they may be, and refuse longer ones (EMSGSIZE)
    refusal,  ///< they refuse them
    nothing,  ///< they are lost
  };
  /// The path carries no datagrams longer than this from now on, in bytes.
  void narrow(size_t max_datagram, Known known) {
    max_datagram_ = max_datagram;
    known_ = known;
  }

  /// The datagram under way that is due next; null: the wire is silent.
  const Datagram* next() const { return flying_.empty() ? nullptr : &flying_.front(); }
  /// More than that one is.
  bool more() const { return flying_.size() > 1; }
  void decide(Fate fate);

  /// There is no next(): ends an outage and brings back what waited for that. False where nothing
  /// did.
  bool fall_silent();
  /// Brings back all that is put aside. False where nothing is.
  bool release_all();

  /// The sizes of what each end sent since clear_sizes(), in bytes.
  const std::vector<size_t>& sizes(size_t side) const { return sizes_[side]; }
  void clear_sizes();

 private:
  class Link;

  llp::SendResult send(size_t side, std::span<const llp::OutgoingDatagram> burst);
  void take(size_t side, const llp::OutgoingDatagram& datagram);
  void pass(const Datagram& datagram);
  void return_swapped(size_t passed_from);
  void put_back(Datagram datagram);

  bool holds_ = false;
  bool outage_ = false;
  size_t max_datagram_ = SIZE_MAX;
  Known known_ = Known::limit;
  uint32_t silences_ = 0;
  uint32_t count_ = 0;
  std::array<Link*, kSides> links_{};
  std::array<std::vector<size_t>, kSides> sizes_;
  std::deque<Datagram> flying_;
  std::vector<Datagram> swapped_;
  std::vector<Datagram> late_;
};

}  // namespace diwarp::explore
