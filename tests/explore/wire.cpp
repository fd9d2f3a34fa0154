// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "llp/forwarding.h"

namespace diwarp::explore {

std::string_view to_string(Fate fate) {
  constexpr std::array<std::string_view, kFates> kNames{"deliver", "drop", "twice", "swap",
                                                        "late",    "echo", "outage"};
  return kNames[static_cast<size_t>(fate)];
}

class Wire::Link final : public llp::ForwardingDatagramLink {
 public:
  Link(Wire& wire, size_t side, std::unique_ptr<llp::DatagramLink> inner)
      : ForwardingDatagramLink(std::move(inner)), wire_(wire), side_(side) {
    wire_.links_[side_] = this;
  }
  ~Link() override { wire_.links_[side_] = nullptr; }

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    return wire_.send(side_, burst);
  }
  size_t max_datagram(const Address& to) override {
    const size_t usual = inner().max_datagram(to);
    return wire_.known_ == Known::limit ? std::min(usual, wire_.max_datagram_) : usual;
  }

 private:
  Wire& wire_;
  const size_t side_;
};

std::unique_ptr<llp::DatagramLink> Wire::attach(size_t side,
                                                std::unique_ptr<llp::DatagramLink> link) {
  return std::make_unique<Link>(*this, side, std::move(link));
}

void Wire::reset() {
  holds_ = outage_ = false;
  max_datagram_ = SIZE_MAX;
  silences_ = count_ = 0;
  clear_sizes();
  flying_.clear();
  swapped_.clear();
  late_.clear();
}

llp::SendResult Wire::send(size_t side, std::span<const llp::OutgoingDatagram> burst) {
  llp::SendResult result;
  for (const llp::OutgoingDatagram& datagram : burst) {
    if (datagram.size() > max_datagram_ && known_ != Known::nothing)
      return {result.sent, llp::SendStatus::refused, EMSGSIZE};
    take(side, datagram);
    ++result.sent;
  }
  return result;
}

void Wire::take(size_t side, const llp::OutgoingDatagram& datagram) {
  if (datagram.size() > max_datagram_) return;
  sizes_[side].push_back(datagram.size());
  Datagram taken{.number = ++count_, .from = side, .to = datagram.to};
  taken.bytes.reserve(datagram.size());
  for (const ConstBytes piece : datagram.pieces)
    taken.bytes.insert(taken.bytes.end(), piece.begin(), piece.end());
  if (holds_)
    flying_.push_back(std::move(taken));
  else
    pass(taken);
}

/// Lost where the end that sent it has gone.
void Wire::pass(const Datagram& datagram) {
  if (links_[datagram.from] == nullptr) return;
  const ConstBytes piece(datagram.bytes);
  const llp::OutgoingDatagram outgoing{datagram.to, {&piece, 1}};
  links_[datagram.from]->inner().send({&outgoing, 1});
}

void Wire::decide(Fate fate) {
  Datagram datagram = std::move(flying_.front());
  flying_.pop_front();
  if (outage_ && !datagram.decided) return;
  datagram.silences = silences_;
  datagram.decided = true;
  switch (fate) {
    case Fate::outage:
      outage_ = true;
      return;
    case Fate::drop:
      return;
    case Fate::swap:
      return swapped_.push_back(std::move(datagram));
    case Fate::late:
      return late_.push_back(std::move(datagram));
    case Fate::deliver:
    case Fate::twice:
    case Fate::echo:
      break;
  }
  pass(datagram);
  return_swapped(datagram.from);
  if (fate == Fate::twice) put_back(std::move(datagram));
  if (fate == Fate::echo) late_.push_back(std::move(datagram));
}

void Wire::put_back(Datagram datagram) { flying_.push_front(std::move(datagram)); }

/// The next one to the same end has passed.
void Wire::return_swapped(size_t passed_from) {
  for (size_t i = 0; i < swapped_.size();) {
    if (swapped_[i].from != passed_from) {
      ++i;
      continue;
    }
    put_back(std::move(swapped_[i]));
    swapped_.erase(swapped_.begin() + static_cast<ptrdiff_t>(i));
  }
}

bool Wire::fall_silent() {
  outage_ = false;
  ++silences_;
  // A silence ended, and another has come, since they were put aside.
  const auto due = [&](const Datagram& datagram) { return silences_ - datagram.silences >= 2; };
  std::vector<Datagram> back = std::exchange(swapped_, {});
  for (Datagram& datagram : late_)
    if (due(datagram)) back.push_back(std::move(datagram));
  std::erase_if(late_, [](const Datagram& datagram) { return datagram.bytes.empty(); });
  for (Datagram& datagram : back) flying_.push_back(std::move(datagram));
  return next() != nullptr;
}

bool Wire::release_all() {
  for (auto* aside : {&swapped_, &late_}) {
    for (Datagram& datagram : *aside) flying_.push_back(std::move(datagram));
    aside->clear();
  }
  return next() != nullptr;
}

void Wire::clear_sizes() {
  for (std::vector<size_t>& sizes : sizes_) sizes.clear();
}

}  // namespace diwarp::explore
