// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <diwarp/verbs.h>

#include "contents.h"

namespace network {

using Json = nlohmann::json;
using Range = diwarp::ValidityMap::Range;

/// The common part of every role.
struct EndpointSettings {
  std::string address;
  bool reliable = false;
  size_t region = size_t{1} << 20;  ///< bytes
  diwarp::STag stag = 0;            ///< chosen, with base 0; 0: a random one
  uint32_t depth = 128;             ///< of the queues
  int64_t record_timeout_ms = 100;
  int64_t peer_timeout_ms = 10'000;  ///< RD
  bool cubic = false;                ///< RD
  diwarp::DatagramOptions datagram = {};
};

/// Adds the options of all roles.
void add_options(CLI::App& app, EndpointSettings& settings);

/// A queue pair over datagrams and a region of memory that peers may use.
struct Endpoint {
  Endpoint(const EndpointSettings& settings, Contents contents);

  diwarp::Device device;
  diwarp::ProtectionDomain pd;
  diwarp::CompletionQueue cq;
  diwarp::QueuePair qp;
  std::vector<std::byte> memory;
  diwarp::MemoryRegion region;
};

/// A peer's memory and where to send to.
struct Remote {
  std::string address;
  diwarp::STag stag = 0;
  uint64_t base = 0;
};
void add_options(CLI::App& app, Remote& remote);

/// The messages of a run: of the sizes in turn, side by side in memory with `gap` bytes between.
struct Layout {
  std::vector<uint32_t> sizes = {1000};
  uint64_t gap = 64;
  uint64_t count = 1;
  Range message(uint64_t number, size_t region) const;
};
void add_options(CLI::App& app, Layout& layout);

/// Prints one line, at once.
void print(const Json& word);
/// Whether somebody closed standard input: the wish that this ends.
bool told_to_end();

/// The valid ranges.
Json to_json(const diwarp::ValidityMap& map);
/// Adds the map of a message whose first byte lies at `offset` of a region to that of the region.
void add(diwarp::ValidityMap& region, const diwarp::ValidityMap& message, uint64_t offset);
/// Those that are not zero.
Json counters_of(const diwarp::Device& device);

/// The part of a region that an SGE list needs: none for no bytes.
/// What is in its error queue, which is empty then.
Json errors_of(diwarp::QueuePair& qp);

std::vector<diwarp::Sge> sges_of(const diwarp::MemoryRegion& region, const Range& part);

// The roles; each returns the program's exit status.
void add_target(CLI::App& app, int& status);
void add_source(CLI::App& app, int& status);
void add_reader(CLI::App& app, int& status);

}  // namespace network
