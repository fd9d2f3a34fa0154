// SPDX-License-Identifier: Apache-2.0
#include "soak/offers.h"

#include <algorithm>
#include <sstream>
#include <string>

namespace soak {

using diwarp::Access;
using diwarp::QpType;

namespace {

constexpr double kPatience = 10;  // seconds that a peer has to give an offer back
constexpr double kNever = 1e18;   // seconds
/// Of memory that peers reach through windows alone.
constexpr Access kBindable = Access::local_write | Access::window_bind;

Access access_for(Use use) {
  switch (use) {
    case Use::write:
      return Access::local_write | Access::remote_write;
    case Use::read:
      return Access::remote_read;
    case Use::atomic:
      return Access::local_write | Access::remote_atomic;
    case Use::invalidate:
      return Access::local_write | Access::remote_write | Access::remote_invalidate;
  }
  return Access::none;
}

}  // namespace

void Offers::keep() {
  for (auto it = process_.offers.begin(); it != process_.offers.end();) {
    Offer& offer = *it;
    const auto next = std::next(it);
    const bool over = process_.clock.wall() >= offer.until;
    if (over && !offer.asked_back && !process_.ending) {
      ask_back(offer);
    } else if (over) {
      end(offer);
      process_.offers.erase(it);
    }
    it = next;
  }
  if (process_.ending) return;
  for (int i = 0; i < 40; ++i) make();
}

void Offers::make() {
  const auto index = static_cast<uint32_t>(process_.random.below(kMostPeers));
  if (process_.remotes[index].life == 0 || process_.offers.size() >= kMostOffers) return;
  Offer offer;
  offer.id = process_.next_number++;
  offer.remote = index;
  offer.remote_life = process_.remotes[index].life;
  offer.type = static_cast<QpType>(process_.random.below(3));
  const bool stream = offer.type == QpType::rc;
  offer.use = process_.random.chance(0.6)
                  ? Use::write
                  : static_cast<Use>(1 + process_.random.below(stream ? 3 : 1));
  offer.until = process_.clock.wall() + 0.2 + process_.random.unit() * 4;
  offer.buffer = process_.arena.take(
      offer.use == Use::atomic ? 64 : pick_size(process_.random, Arena::kLargest));
  if (!offer.buffer) return;
  const Kind contents = offer.use == Use::read ? Kind::readable : Kind::untouched;
  fill(offer.buffer.bytes(), process_.own_key(contents, offer.id));
  if (offer.use == Use::atomic) std::ranges::fill(offer.buffer.bytes(), std::byte{0});
  // Bound through a connection: bytes, and none that only this peer's atomics may use.
  const bool windowed = stream && offer.use != Use::atomic && !offer.buffer.bytes().empty() &&
                        has_stream(index) && process_.random.chance(0.3);
  try {
    offer.buffer.register_at(process_.handles.pd, windowed ? kBindable : access_for(offer.use));
    if (windowed) offer.window.emplace(process_.handles.pd);
  } catch (const std::exception&) {
    return process_.ledger.count("limited.region");
  }
  process_.ledger.count("regions");
  Offer& made = process_.offers.emplace_back(std::move(offer));
  if (windowed) return bind_window(made);
  made.stag = made.buffer.region().rkey();
  made.base = made.buffer.region().base();
  announce(made);
}

bool Offers::has_stream(uint32_t remote) const {
  const Line& line = process_.lines[2 + remote];
  return line.state == Line::State::up && line.remote_life == process_.remotes[remote].life;
}

/// The offer is told when it is bound.
void Offers::bind_window(Offer& offer) {
  Line& line = process_.lines[2 + offer.remote];
  offer.stag = offer.window->stag();
  offer.base = process_.random.below(uint64_t{1} << 40);
  offer.until = kNever;
  const std::span<std::byte> bytes = offer.buffer.bytes();
  const size_t shift = process_.faults.planted("window") && bytes.size() > 100 ? 1 : 0;
  Request* request = posting_.prepare(line, offer.remote, Operation::bind_window, 0, Access::none);
  if (request == nullptr) return window_bound(offer.id, false);
  request->offer = offer.id;
  const diwarp::SendWorkRequest wr{.opcode = diwarp::WrOpcode::bind_window,
                                   .binding = {.stag = offer.stag,
                                               .region = offer.buffer.region().lkey(),
                                               .address = bytes.data() + shift,
                                               .length = bytes.size() - shift,
                                               .access = access_for(offer.use),
                                               .base = offer.base}};
  if (!posting_.post(line, *request, wr)) window_bound(offer.id, false);
}

void Offers::window_bound(uint64_t id, bool success) {
  Offer* const offer = find(id);
  if (offer == nullptr || offer->asked_back) return;
  offer->until = success ? process_.clock.wall() + process_.random.unit() * 4 : 0;
  offer->asked_back = !success;
  if (!success) return;
  process_.ledger.count("windows");
  announce(*offer);
}

void Offers::announce(const Offer& offer) {
  std::ostringstream text;
  text << "offer " << offer.id << ' ' << int(offer.type) << ' ' << int(offer.use) << ' '
       << offer.stag << ' ' << offer.base << ' ' << offer.buffer.bytes().size() << ' '
       << offer.window.has_value();
  process_.tell(offer.remote, text.str());
}

void Offers::end_windows(uint32_t remote) {
  for (Offer& offer : process_.offers) {
    if (offer.window && offer.remote == remote && !offer.asked_back) ask_back(offer);
  }
}

/// Most offers end when the peer has given them back. The others end in use.
void Offers::ask_back(Offer& offer) {
  const bool in_use = process_.random.chance(offer.type == QpType::rc ? 0.02 : 0.5);
  offer.asked_back = true;
  offer.until = in_use ? 0 : process_.clock.wall() + kPatience;
  if (in_use) process_.ledger.count("regions-ended-in-use");
  process_.tell(offer.remote, "withdraw " + std::to_string(offer.id));
}

void Offers::end(Offer& offer) {
  if (process_.random.chance(0.5)) offer.window.reset();  // else it goes with its region
  offer.buffer.deregister();
  offer.window.reset();
  const std::span<std::byte> bytes = offer.buffer.bytes();
  if (offer.use == Use::read) {
    const auto wrong = first_wrong(bytes, process_.own_key(Kind::readable, offer.id));
    if (wrong) process_.ledger.wrong_byte("memory that peers only read", bytes, *wrong);
  } else if (offer.use == Use::write) {
    offer.written ? check_told(offer) : check_untold(offer);
  }
  fill(bytes, process_.own_key(Kind::scribble, offer.id));  // no peer may see this
}

void Offers::check_told(const Offer& offer) {
  const std::span<const std::byte> bytes = offer.buffer.bytes();
  const uint64_t before = process_.own_key(Kind::untouched, offer.id);
  const auto part = [&](uint64_t begin, uint64_t end, uint64_t contents) {
    const auto wrong = first_wrong(bytes.subspan(begin, end - begin), contents, begin);
    if (wrong) process_.ledger.wrong_byte("memory that a peer wrote", bytes, begin + *wrong);
  };
  part(0, offer.begin, before);
  part(offer.begin, offer.end, process_.own_key(Kind::written, offer.id));
  part(offer.end, bytes.size(), before);
  process_.ledger.verified(bytes.size());
}

/// Each byte is as it was, or as the peer would write it.
void Offers::check_untold(const Offer& offer) {
  const std::span<const std::byte> bytes = offer.buffer.bytes();
  const uint64_t before = process_.own_key(Kind::untouched, offer.id);
  const uint64_t written = process_.own_key(Kind::written, offer.id);
  for (size_t at = 0; at < bytes.size();) {
    const size_t count = std::min<size_t>(4096, bytes.size() - at);
    const auto part = bytes.subspan(at, count);
    if (first_wrong(part, before, at) && first_wrong(part, written, at)) {
      for (size_t i = at; i < at + count; ++i) {
        if (bytes[i] != byte_at(before, i) && bytes[i] != byte_at(written, i))
          return process_.ledger.wrong_byte("memory that a peer may write", bytes, i);
      }
    }
    at += count;
  }
}

Offer* Offers::find(uint64_t id) {
  const auto found = std::ranges::find(process_.offers, id, &Offer::id);
  return found == process_.offers.end() ? nullptr : &*found;
}

}  // namespace soak
