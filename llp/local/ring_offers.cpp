// SPDX-License-Identifier: Apache-2.0
#include "llp/local/ring_offers.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "llp/local/shared_memory.h"

namespace diwarp::llp {
namespace {

constexpr uint32_t kMaxSweeps = 2;
/// The same where nothing goes another way.
constexpr uint32_t kMaxSweepsRequired = 10;

/// The devices that datagrams to an address may come to: those at it, and those at all addresses.
std::vector<Address> devices_for(const Address& to) {
  std::vector<Address> devices = {to.with_port(0), Address::any(to.family())};
  if (to.family() == AddressFamily::ipv4) devices.push_back(Address::any(AddressFamily::ipv6));
  return devices;
}

}  // namespace

/// Rings that users have.
size_t RingOffers::rings() {
  std::erase_if(writers_, [](const Writer& writer) { return writer.ring.expired(); });
  return writers_.size();
}

/// Where a device has as many rings as it may, those that are idle go first.
bool RingOffers::has_place() {
  const size_t most = settings_.max_rings;
  for (size_t i = 0; i < writers_.size() && rings() + searches_.size() > most; ++i)
    if (!writers_[i].ring.expired()) writers_[i].user->end_idle();
  return rings() + searches_.size() <= most;
}

void RingOffers::seek(RingUser& user, const LocalRoute& route, uint32_t number) {
  auto search = std::make_unique<Search>();
  search->number = next_number_++;
  search->user = &user;
  search->route = route;
  search->local = number;
  Search& one = *searches_.emplace_back(std::move(search));
  if (!has_place()) return fail(one, RingRefusal::too_many);
  UniqueFd spare;
  for (const Address& device : devices_for(route.to)) {
    std::bitset<kMaxLocalNames>& names = names_of(device);
    for (uint32_t name = 0; name < kMaxLocalNames; ++name)
      if (names[name]) names[name] = ask(one, local_name(::geteuid(), device, name), spare);
  }
  if (one.asked.empty()) fail(one, RingRefusal::no_queue_pair);
}

/// The names of the device that may be somebody's, as far as was found since the last sweep.
std::bitset<kMaxLocalNames>& RingOffers::names_of(const Address& device) {
  const auto known = std::find_if(names_.begin(), names_.end(),
                                  [&](const Names& names) { return names.device == device; });
  if (known != names_.end()) return known->taken;
  names_.push_back({.device = device, .taken = {}});
  return names_.back().taken.set();
}

/// Whether somebody has the name.
bool RingOffers::ask(Search& search, const std::string& name, UniqueFd& spare) {
  const auto connection = connection_to(name, spare);
  if (connection == nullptr) return false;
  const bool asked = connection->send(
      {.kind = LocalPacket::Kind::ask, .number = search.number, .route = search.route});
  if (asked) search.asked.push_back(connection.get());
  return true;
}

std::shared_ptr<LocalConnection> RingOffers::connection_to(const std::string& name,
                                                           UniqueFd& spare) {
  const auto known = std::find_if(peers_.begin(), peers_.end(),
                                  [&](const Peer& peer) { return peer.name == name; });
  if (known != peers_.end()) return known->connection;
  if (!connect_locally(name, spare)) return nullptr;
  auto connection = LocalConnection::over(spare);
  peers_.reserve(peers_.size() + 1);
  if (connection == nullptr || !connections_.add(ConnectionSet::Role::producer, connection)) {
    tell_refused(name);
    spare.reset();  // connected, it cannot try another name
    return nullptr;
  }
  peers_.push_back({.name = name, .connection = connection});
  return connection;
}

void RingOffers::tell_refused(const std::string& name) {
  counters_.add(Counter::local_refused);
  log::tell(LogLevel::info, {}, [&] {
    return "The process that listens as " + name +
           " is not asked for a way through shared memory: it is another user's, of another PID "
           "namespace, or there is no descriptor for it";
  });
}

// --- Answers.

void RingOffers::take(const std::shared_ptr<LocalConnection>& connection) {
  for (size_t i = 0; i < kMaxPacketsPerLook; ++i) {
    const auto next = connection->receive();
    if (!next) break;
    answer(connection, next->first);
  }
  if (connection->is_over())
    lose(*connection);
  else
    tell_room(*connection);
}

/// Whatever came may have had no room for a packet that tells of room.
void RingOffers::tell_room(const LocalConnection& connection) {
  for (const Writer& writer : writers_)
    if (const auto ring = writer.ring.lock(); ring && ring->connection.get() == &connection)
      writer.user->room_made(connection);
}

void RingOffers::answer(const std::shared_ptr<LocalConnection>& connection,
                        const LocalPacket& packet) {
  const auto found = std::find_if(searches_.begin(), searches_.end(), [&](const auto& search) {
    return search->number == packet.number;
  });
  if (found == searches_.end()) {
    // A ring that is taken too late would keep its place there.
    if (packet.kind == LocalPacket::Kind::taken) end_ring(*connection, packet.number);
    return;
  }
  Search& search = **found;
  const bool was_asked = std::erase(search.asked, connection.get()) != 0;
  switch (packet.kind) {
    case LocalPacket::Kind::here:
      if (was_asked) search.willing.push_back(connection);
      return go_on(search, RingRefusal::none);
    case LocalPacket::Kind::absent:
      return go_on(search, RingRefusal::no_queue_pair);
    case LocalPacket::Kind::taken:
      if (search.chosen == connection) finish(search, packet.crc);
      return;
    case LocalPacket::Kind::refused:
      if (search.chosen != connection) return;
      search.chosen = nullptr;
      return go_on(search, packet.refusal);
    default:
      return;  // that there is room; a consumer says nothing else
  }
}

/// Offers a ring to the next that said it has the queue pair. Where nobody can say so any more the
/// search is over, for this reason.
void RingOffers::go_on(Search& search, RingRefusal why) {
  if (search.chosen != nullptr) return;
  while (!search.willing.empty()) {
    search.chosen = search.willing.back();
    search.willing.pop_back();
    if (offer(search)) return;
    search.chosen = nullptr;
    why = RingRefusal::memory;
  }
  if (search.asked.empty()) fail(search, why);
}

bool RingOffers::offer(Search& search) {
  auto shared = new_shared_memory(ring_memory(settings_.ring));
  if (!shared) return false;
  search.memory = std::move(shared->memory);
  search.descriptor = std::move(shared->fd);
  return search.chosen->send({.kind = LocalPacket::Kind::offer,
                              .number = search.number,
                              .bytes = settings_.ring,
                              .route = search.route},
                             search.descriptor.get());
}

void RingOffers::end_ring(LocalConnection& connection, uint32_t number) {
  connection.send({.kind = LocalPacket::Kind::end, .number = number});
}

void RingOffers::finish(Search& search, bool consumer_wants_crc) {
  if (!may_not_be_punched(search.descriptor.get())) {  // guard(shared-memory)
    end_ring(*search.chosen, search.number);
    return fail(search, RingRefusal::memory);
  }
  const Destination to(search.route.to, search.local);
  const bool crc = settings_.crc || consumer_wants_crc;
  const auto ring =
      std::make_shared<RingOut>(search.number, to, crc, std::move(search.memory), search.chosen);
  writers_.push_back({.ring = ring, .user = search.user});
  counters_.add(Counter::local_peers);
  search.user->add(ring);
  end_search(search);
}

void RingOffers::fail(Search& search, RingRefusal why) {
  const Address to = search.route.to;
  if (why != RingRefusal::no_queue_pair) {
    counters_.add(Counter::local_refused);
    log::tell(LogLevel::info, {}, [&] {
      return "What goes to " + to.to_string() +
             " goes by the network's stack, not through shared memory: " +
             std::string(explain(why));
    });
  }
  search.user->nobody_there({to, search.local});
  end_search(search);
}

void RingOffers::end_search(const Search& search) {
  std::erase_if(searches_, [&](const auto& one) { return one.get() == &search; });
}

// --- Ends.

void RingOffers::lose(const LocalConnection& connection) {
  const auto is_it = [&](const auto& one) { return one.get() == &connection; };
  std::vector<Search*> open;
  for (const auto& search : searches_) open.push_back(search.get());
  for (Search* const search : open) {
    std::erase(search->asked, &connection);
    std::erase_if(search->willing, is_it);
    if (is_it(search->chosen)) search->chosen = nullptr;
    go_on(*search, RingRefusal::no_queue_pair);
  }
  tell_room(connection);
  connections_.remove(connection);
  std::erase_if(peers_, [&](const Peer& peer) { return is_it(peer.connection); });
}

void RingOffers::forget(const RingUser& user) {
  std::erase_if(searches_, [&](const auto& search) { return search->user == &user; });
  std::erase_if(writers_, [&](const Writer& writer) { return writer.user == &user; });
}

void RingOffers::sweep() {
  names_.clear();
  const uint32_t most = settings_.required ? kMaxSweepsRequired : kMaxSweeps;
  std::vector<Search*> late;
  for (const auto& search : searches_)
    if (++search->sweeps >= most) late.push_back(search.get());
  for (Search* const search : late) give_up(*search);

  for (const Writer& writer : writers_)
    if (!writer.ring.expired()) writer.user->end_idle();
  rings();
  close_unused();
}

/// One that has not answered in time is waited for no longer; another one may have said that it has
/// the queue pair.
void RingOffers::give_up(Search& search) {
  if (search.chosen != nullptr) end_ring(*search.chosen, search.number);
  search.chosen = nullptr;
  search.sweeps = 0;
  search.asked.clear();
  go_on(search, RingRefusal::none);
}

/// Connections that no ring and no search has.
void RingOffers::close_unused() {
  constexpr long kOwnUses = 2;  // that of a Peer, and that of the set
  std::erase_if(peers_, [this](const Peer& peer) {
    const auto is_asked = [&](const auto& search) {
      const auto& asked = search->asked;
      return std::find(asked.begin(), asked.end(), peer.connection.get()) != asked.end();
    };
    if (peer.connection.use_count() != kOwnUses) return false;
    if (std::any_of(searches_.begin(), searches_.end(), is_asked)) return false;
    connections_.remove(*peer.connection);
    return true;
  });
}

}  // namespace diwarp::llp
