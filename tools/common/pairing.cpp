// SPDX-License-Identifier: Apache-2.0
#include "common/pairing.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/failure.h"
#include "common/interrupt.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

using Token = std::array<std::byte, sizeof(uint64_t)>;

Token token_bytes(uint64_t token) {
  Token bytes;
  std::memcpy(bytes.data(), &token, sizeof token);
  return bytes;
}

bool carries(const ConnectionRequest& request, const Token& token) {
  return std::ranges::equal(request.private_data(), token);
}

/// The request that carries the token; others are rejected.
ConnectionRequest await_request(Listener& listener, Control& control, uint64_t token) {
  constexpr Duration kSlice = std::chrono::milliseconds(50);
  const Token expected = token_bytes(token);
  const Time deadline = steady_clock::now() + control.timeout();
  while (steady_clock::now() < deadline) {
    check_interrupted();
    control.look();
    std::optional<ConnectionRequest> request = listener.get_request(kSlice);
    if (!request) continue;
    if (carries(*request, expected)) return std::move(*request);
    request->reject();
  }
  throw Failure("No RC connection came from " + control.peer_address().host() + " within " +
                to_text(control.timeout()) + ".");
}

Address peer_queue_pair(const Control& control, const Json& message) {
  const auto port = static_cast<uint16_t>(number_in(message, "port", 1, 65535));
  const bool told = message.contains("address");
  return (told ? address_in(message, "address") : control.peer_address()).with_port(port);
}

/// Adds where the peer reaches this end: the address only where it is not that of the control
/// connection, which the peer may see translated (NAT).
Json with_place(const Endpoint& endpoint, const Control& control, uint16_t port, Json message) {
  message["port"] = port;
  const Address address = endpoint.device_address().with_port(0);
  const bool seen = address.is_any() || address == control.local_address().with_port(0);
  if (!seen) message["address"] = address.host();
  return message;
}

/// Adds what the peer must know of this end's memory, if it may use any.
Json with_memory(const Endpoint& endpoint, Json message) {
  if (const auto memory = endpoint.granted_memory()) {
    message["memory"] = {{"stag", memory->stag}, {"offset", memory->offset}};
  }
  return message;
}

void take_memory(Endpoint& endpoint, const Json& message) {
  if (!endpoint.shape().needs_peer_memory()) return;
  const Json memory = message.value("memory", Json::object());
  endpoint.set_peer_memory({.stag = static_cast<STag>(number_in(memory, "stag", 0, UINT32_MAX)),
                            .offset = number_in(memory, "offset", 0, UINT64_MAX)});
}

}  // namespace

void pair_as_client(Endpoint& endpoint, Control& control, Json row, uint64_t token) {
  const bool datagrams = is_datagram(endpoint.shape().transport);
  const uint16_t port = datagrams ? endpoint.queue_pair().address().port() : 1;
  control.send(with_memory(endpoint, with_place(endpoint, control, port, std::move(row))));
  const Json ready = control.expect("ready");
  endpoint.set_peer(peer_queue_pair(control, ready));
  take_memory(endpoint, ready);
  if (datagrams) return;
  const Token data = token_bytes(token);
  endpoint.queue_pair().connect(
      endpoint.peer(),
      {.private_data = data, .timeout = control.timeout(), .crc = endpoint.shape().crc});
}

void pair_with_group(Endpoint& endpoint, const Peers& peers, Json row, const Group& group) {
  row["group"] = to_json(group);
  peers.send(
      with_place(endpoint, peers.front(), endpoint.queue_pair().address().port(), std::move(row)));
  std::vector<Address> members;
  for (Control& control : peers) {
    members.push_back(peer_queue_pair(control, control.expect("ready")));
  }
  endpoint.set_group(group.address, std::move(members));
  endpoint.set_peer_memory({.stag = group.stag, .offset = 0});
}

void pair_with_servers(Endpoint& endpoint, const Peers& peers, Json row,
                       const std::optional<Group>& group, uint64_t token) {
  if (group)
    pair_with_group(endpoint, peers, std::move(row), *group);
  else
    pair_as_client(endpoint, peers, std::move(row), token);
}

void pair_as_server(Endpoint& endpoint, const Device& device, Control& control, const Json& row,
                    uint64_t token) {
  take_memory(endpoint, row);
  if (is_datagram(endpoint.shape().transport)) {
    endpoint.set_peer(peer_queue_pair(control, row));
    const uint16_t port = endpoint.queue_pair().address().port();
    control.send(with_memory(endpoint, with_place(endpoint, control, port, {{"type", "ready"}})));
    return;
  }
  Listener listener(device, 0);
  const uint16_t port = listener.address().port();
  control.send(with_memory(endpoint, with_place(endpoint, control, port, {{"type", "ready"}})));
  ConnectionRequest request = await_request(listener, control, token);
  endpoint.set_peer(request.peer_address());
  request.accept(endpoint.queue_pair(), {.crc = endpoint.shape().crc});
}

void part(Endpoint& endpoint) {
  if (endpoint.shape().transport != QpType::rc) return;
  endpoint.queue_pair().disconnect({.timeout = std::chrono::seconds(2)});
}

Duration patience(uint64_t size, uint64_t count, uint64_t rate) {
  constexpr double kSlowest = 50e6;  // bytes a second
  const double pace = rate == 0 ? kSlowest : std::min(kSlowest, 0.8 * static_cast<double>(rate));
  const double seconds = static_cast<double>(size) * static_cast<double>(count) / pace;
  return std::chrono::milliseconds(100) +
         std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace diwarp::tools
