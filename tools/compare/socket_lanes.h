// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "compare/lane.h"

namespace diwarp::tools {

// The measure: what a program gets from nothing but sockets. All poll without ever sleeping.

/// Ping-pong over UDP sockets, unconnected as a datagram queue pair's is, or connected.
std::unique_ptr<Lane> make_udp_ping_pong(const Place& place, size_t size, bool connected);
/// Ping-pong over a TCP stream (TCP_NODELAY).
std::unique_ptr<Lane> make_tcp_ping_pong(const Place& place, size_t size);

/// Datagrams over connected UDP sockets, 64 by 64 with sendmmsg and recvmmsg.
std::unique_ptr<Lane> make_udp_batches(const Place& place, size_t size);
/// Trains of datagrams of `segment` bytes, as long as one call carries, over connected UDP sockets:
/// split and joined by the kernel (UDP_SEGMENT, UDP_GRO).
std::unique_ptr<Lane> make_udp_trains(const Place& place, size_t segment);
/// A TCP stream, read and written `size` bytes at a time.
std::unique_ptr<Lane> make_tcp_stream(const Place& place, size_t size);

/// Why there can be no trains: "" if the kernel takes both options.
std::string trains_obstacle();

}  // namespace diwarp::tools
