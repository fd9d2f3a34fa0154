// SPDX-License-Identifier: Apache-2.0
/// Memory that is lent to peers, and taken back while they use it.
#include <algorithm>
#include <cstring>
#include <sstream>

#include "soak/peer.h"

namespace soak {

using diwarp::Access;
using diwarp::QpType;

namespace {

constexpr size_t kMostOffers = 128;
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

void Peer::keep_offers() {
  for (auto it = offers_.begin(); it != offers_.end();) {
    Offer& offer = *it;
    const auto next = std::next(it);
    const bool over = wall_ >= offer.until;
    if (over && !offer.asked_back && !ending_) {
      ask_back(offer);
    } else if (over) {
      end_offer(offer);
      offers_.erase(it);
    }
    it = next;
  }
  if (ending_) return;
  for (int i = 0; i < 40; ++i) make_offer();
}

bool Peer::has_stream(uint32_t remote) const {
  const Line& line = lines_[2 + remote];
  return line.state == Line::State::up && line.remote_life == remotes_[remote].life;
}

void Peer::make_offer() {
  const auto index = static_cast<uint32_t>(random_.below(kMostPeers));
  if (remotes_[index].life == 0 || offers_.size() >= kMostOffers) return;
  Offer offer;
  offer.id = next_number_++;
  offer.remote = index;
  offer.remote_life = remotes_[index].life;
  offer.type = static_cast<QpType>(random_.below(3));
  const bool stream = offer.type == QpType::rc;
  offer.use =
      random_.chance(0.6) ? Use::write : static_cast<Use>(1 + random_.below(stream ? 3 : 1));
  offer.until = wall_ + 0.2 + random_.unit() * 4;
  offer.buffer = arena_.take(offer.use == Use::atomic ? 64 : pick_size(Arena::kLargest));
  if (!offer.buffer) return;
  const Kind contents = offer.use == Use::read ? Kind::readable : Kind::untouched;
  fill(offer.buffer.bytes(), own_key(contents, offer.id));
  if (offer.use == Use::atomic) std::ranges::fill(offer.buffer.bytes(), std::byte{0});
  // Bound through a connection: bytes, and none that only this peer's atomics may use.
  const bool windowed = stream && offer.use != Use::atomic && !offer.buffer.bytes().empty() &&
                        has_stream(index) && random_.chance(0.3);
  try {
    offer.buffer.register_at(pd_, windowed ? kBindable : access_for(offer.use));
    if (windowed) offer.window.emplace(pd_);
  } catch (const std::exception&) {
    return ledger_.count("limited.region");
  }
  ledger_.count("regions");
  Offer& made = offers_.emplace_back(std::move(offer));
  if (windowed) return bind_window(made);
  made.stag = made.buffer.region().rkey();
  made.base = made.buffer.region().base();
  announce_offer(made);
}

void Peer::announce_offer(Offer& offer) {
  std::ostringstream text;
  text << "offer " << offer.id << ' ' << int(offer.type) << ' ' << int(offer.use) << ' '
       << offer.stag << ' ' << offer.base << ' ' << offer.buffer.bytes().size() << ' '
       << offer.window.has_value();
  tell(offer.remote, text.str());
}

/// The offer is told when it is bound.
void Peer::bind_window(Offer& offer) {
  Line& line = lines_[2 + offer.remote];
  offer.stag = offer.window->stag();
  offer.base = random_.below(uint64_t{1} << 40);
  offer.until = kNever;
  const std::span<std::byte> bytes = offer.buffer.bytes();
  const size_t shift = planted("window") && bytes.size() > 100 ? 1 : 0;
  Request* request = prepare(line, offer.remote, Operation::bind_window, 0, Access::none);
  if (request == nullptr) return window_bound(offer.id, false);
  request->offer = offer.id;
  const diwarp::SendWorkRequest wr{.opcode = diwarp::WrOpcode::bind_window,
                                   .binding = {.stag = offer.stag,
                                               .region = offer.buffer.region().lkey(),
                                               .address = bytes.data() + shift,
                                               .length = bytes.size() - shift,
                                               .access = access_for(offer.use),
                                               .base = offer.base}};
  if (!post(line, *request, wr)) window_bound(offer.id, false);
}

void Peer::window_bound(uint64_t id, bool success) {
  Offer* const offer = find_offer(id);
  if (offer == nullptr || offer->asked_back) return;
  offer->until = success ? wall_ + random_.unit() * 4 : 0;
  offer->asked_back = !success;
  if (!success) return;
  ledger_.count("windows");
  announce_offer(*offer);
}

/// A window is good for the connection that it was bound over alone.
void Peer::end_windows(uint32_t remote) {
  for (Offer& offer : offers_) {
    if (offer.window && offer.remote == remote && !offer.asked_back) ask_back(offer);
  }
}

/// Most offers end when the peer has given them back. The others end in use.
void Peer::ask_back(Offer& offer) {
  const bool in_use = random_.chance(offer.type == QpType::rc ? 0.02 : 0.5);
  offer.asked_back = true;
  offer.until = in_use ? 0 : wall_ + kPatience;
  if (in_use) ledger_.count("regions-ended-in-use");
  tell(offer.remote, "withdraw " + std::to_string(offer.id));
}

void Peer::end_offer(Offer& offer) {
  if (random_.chance(0.5)) offer.window.reset();  // else it goes with its region
  offer.buffer.deregister();
  offer.window.reset();
  const std::span<std::byte> bytes = offer.buffer.bytes();
  if (offer.use == Use::read) {
    const auto wrong = first_wrong(bytes, own_key(Kind::readable, offer.id));
    if (wrong) wrong_byte("memory that peers only read", bytes, *wrong);
  } else if (offer.use == Use::write) {
    offer.written ? check_told(offer) : check_untold(offer);
  }
  fill(bytes, own_key(Kind::scribble, offer.id));  // no peer may see this
}

/// The bytes that the peer told of are there, and nothing else has changed.
void Peer::check_told(const Offer& offer) {
  const std::span<const std::byte> bytes = offer.buffer.bytes();
  const uint64_t before = own_key(Kind::untouched, offer.id);
  const auto part = [&](uint64_t begin, uint64_t end, uint64_t contents) {
    const auto wrong = first_wrong(bytes.subspan(begin, end - begin), contents, begin);
    if (wrong) wrong_byte("memory that a peer wrote", bytes, begin + *wrong);
  };
  part(0, offer.begin, before);
  part(offer.begin, offer.end, own_key(Kind::written, offer.id));
  part(offer.end, bytes.size(), before);
  ledger_.verified(bytes.size());
}

/// Each byte is as it was, or as the peer would write it.
void Peer::check_untold(const Offer& offer) {
  const std::span<const std::byte> bytes = offer.buffer.bytes();
  const uint64_t before = own_key(Kind::untouched, offer.id);
  const uint64_t written = own_key(Kind::written, offer.id);
  for (size_t at = 0; at < bytes.size();) {
    const size_t count = std::min<size_t>(4096, bytes.size() - at);
    const auto part = bytes.subspan(at, count);
    if (first_wrong(part, before, at) && first_wrong(part, written, at)) {
      for (size_t i = at; i < at + count; ++i) {
        if (bytes[i] != byte_at(before, i) && bytes[i] != byte_at(written, i))
          return wrong_byte("memory that a peer may write", bytes, i);
      }
    }
    at += count;
  }
}

Offer* Peer::find_offer(uint64_t id) {
  const auto found = std::ranges::find(offers_, id, &Offer::id);
  return found == offers_.end() ? nullptr : &*found;
}

void Peer::take_offer(uint32_t index, std::istream& words) {
  Lent lent;
  int type = 0, use = 0;
  words >> lent.id >> type >> use >> lent.stag >> lent.base >> lent.length >> lent.windowed;
  lent.type = static_cast<QpType>(type);
  lent.use = static_cast<Use>(use);
  std::vector<Lent>& all = remotes_[index].lent;
  if (all.size() >= kMostOffers) all.erase(all.begin());
  all.push_back(lent);
}

Lent* Peer::pick(uint32_t remote, QpType type, Use use) {
  std::vector<Lent>& all = remotes_[remote].lent;
  if (all.empty()) return nullptr;
  const size_t first = random_.below(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    Lent& lent = all[(first + i) % all.size()];
    if (lent.type == type && lent.use == use && !lent.asked_back) return &lent;
  }
  return nullptr;
}

void Peer::forget(uint32_t remote, uint64_t id) {
  std::erase_if(remotes_[remote].lent, [id](const Lent& lent) { return lent.id == id; });
}

/// Gives an offer back that was asked back and that nothing names any more.
void Peer::return_offer(uint32_t index, uint64_t id) {
  std::vector<Lent>& all = remotes_[index].lent;
  const auto found = std::ranges::find(all, id, &Lent::id);
  if (found == all.end() || !found->asked_back || found->readers != 0) return;
  all.erase(found);
  tell(index, "released " + std::to_string(id));
}

void Peer::release_reader(const Request& request) {
  if (request.offer == 0 || request.offer_life != remotes_[request.remote].life) return;
  std::vector<Lent>& all = remotes_[request.remote].lent;
  const auto found = std::ranges::find(all, request.offer, &Lent::id);
  if (found == all.end() || found->readers == 0) return;
  --found->readers;
  return_offer(request.remote, request.offer);
}

}  // namespace soak
