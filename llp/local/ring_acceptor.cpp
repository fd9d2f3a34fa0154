// SPDX-License-Identifier: Apache-2.0
#include "llp/local/ring_acceptor.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/log.h"
#include "llp/favoured_destination.h"
#include "llp/socket/local_destination.h"
#include "llp/socket/socket_owner.h"

namespace diwarp::llp {
namespace {

/// Connections of others, those included that only ask.
constexpr size_t kMaxArrivals = 256;

bool may_be_ring(const LocalPacket& offer, const UniqueFd& descriptor) {
  return descriptor && offer.bytes >= kLeastRing && offer.bytes <= kMostRing &&
         std::has_single_bit(offer.bytes);
}

/// Whether what goes this way would come from a socket of this user's.
bool is_our_users(const LocalRoute& route) {
  if (route.from.port() == 0 || !is_a_host(route.from)) return false;
  const auto owner = route.kind == RingKind::stream ? owner_of_tcp_socket(route.from, route.to)
                                                    : owner_of_udp_socket(route.from, route.to);
  return owner == std::optional(::geteuid());
}

}  // namespace

void RingAcceptor::arrive(UniqueFd socket) {
  const bool room = connections_.size(ConnectionSet::Role::consumer) < kMaxArrivals;
  const auto connection = room ? LocalConnection::over(socket) : nullptr;
  if (connection != nullptr && connections_.add(ConnectionSet::Role::consumer, connection)) return;
  if (socket && is_hung_up(socket.get())) return;  // it wants nothing any more
  counters_.add(Counter::local_refused);
  log::tell(LogLevel::info, {}, [&] {
    return std::string(
               "A process of this host that wants to send through shared memory is refused: ") +
           (room ? "it is another user's, or of another PID namespace" : "there are too many");
  });
}

void RingAcceptor::tell_refused(const LocalRoute& route, RingRefusal why) {
  counters_.add(Counter::local_refused);
  log::tell(LogLevel::info, {}, [&] {
    return "What comes from " + route.from.to_string() + " to " + route.to.to_string() +
           " does not come through shared memory: " + std::string(explain(why));
  });
}

void RingAcceptor::take(const std::shared_ptr<LocalConnection>& connection, RouteTable& users) {
  for (size_t i = 0; i < kMaxPacketsPerLook; ++i) {
    auto next = connection->receive();
    if (!next) break;
    handle(connection, next->first, std::move(next->second), users);
  }
  if (connection->is_over()) return lose(*connection);
  each_over(*connection, [](RingUser& user) { user.woken(); });
}

void RingAcceptor::handle(const std::shared_ptr<LocalConnection>& connection,
                          const LocalPacket& packet, UniqueFd descriptor, RouteTable& users) {
  LocalPacket answer{.number = packet.number, .crc = settings_.crc};
  switch (packet.kind) {
    case LocalPacket::Kind::ask:
      answer.kind =
          users.find(packet.route) != nullptr ? LocalPacket::Kind::here : LocalPacket::Kind::absent;
      connection->send(answer);
      return;
    case LocalPacket::Kind::offer:
      answer.refusal = accept(connection, packet, std::move(descriptor), users);
      answer.kind = answer.refusal == RingRefusal::none ? LocalPacket::Kind::taken
                                                        : LocalPacket::Kind::refused;
      if (answer.refusal != RingRefusal::none) tell_refused(packet.route, answer.refusal);
      // Where the answer finds no room, the producer gives the search up, and ends the ring.
      connection->send(answer);
      return;
    case LocalPacket::Kind::wake:
      return;  // take() does it for all packets
    case LocalPacket::Kind::end:
      return each_over(*connection, [&](RingUser& user) { user.end(*connection, packet.number); });
    default:
      return connection->end();  // a producer says nothing else
  }
}

RingRefusal RingAcceptor::accept(const std::shared_ptr<LocalConnection>& connection,
                                 const LocalPacket& offer, UniqueFd descriptor, RouteTable& users) {
  if (!may_be_ring(offer, descriptor)) return RingRefusal::memory;  // guard(ring-offer)
  RingUser* const user = users.find(offer.route);
  if (user == nullptr || !is_local_destination(offer.route.to)) return RingRefusal::no_queue_pair;
  if (!is_our_users(offer.route)) return RingRefusal::not_yours;     // guard(ring-offer)
  if (rings() >= settings_.max_rings) return RingRefusal::too_many;  // guard(ring-offer)
  auto memory = SharedMemory::map(descriptor.get(), ring_memory(offer.bytes));
  if (!memory) return RingRefusal::memory;
  const auto ring =
      std::make_shared<RingIn>(offer.number, offer.route, *std::move(memory), connection);
  readers_.reserve(readers_.size() + 1);
  user->add(ring);
  readers_.push_back({.ring = ring, .user = user});
  return RingRefusal::none;
}

/// Rings that users have.
size_t RingAcceptor::rings() {
  std::erase_if(readers_, [](const Reader& reader) { return reader.ring.expired(); });
  return readers_.size();
}

template <class Visit>
void RingAcceptor::each_over(const LocalConnection& connection, Visit&& visit) {
  for (const Reader& reader : readers_)
    if (const auto ring = reader.ring.lock(); ring && ring->connection.get() == &connection)
      visit(*reader.user);
}

void RingAcceptor::lose(const LocalConnection& connection) {
  each_over(connection, [&](RingUser& user) { user.end(connection, std::nullopt); });
  connections_.remove(connection);
}

void RingAcceptor::sweep() {
  rings();
  connections_.age([this](const LocalConnection& connection) {
    bool has_ring = false;
    each_over(connection, [&](RingUser&) { has_ring = true; });
    return has_ring;
  });
}

void RingAcceptor::forget(const RingUser& user) {
  std::erase_if(readers_, [&](const Reader& reader) { return reader.user == &user; });
}

}  // namespace diwarp::llp
