// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <utility>

namespace interop {
namespace {

/// The names as CLI read them, before they are what they name.
struct Names {
  std::vector<std::string> ops{"send"};
  std::vector<std::string> actors{"client"};
  std::string fault = "none";
  double timeout = 20;
};

void add_steps(CLI::App& app, Options& options, Names& names) {
  app.add_option("--ops", names.ops,
                 "send, send_solicited, send_invalidate, send_both, write, read")
      ->delimiter(',');
  app.add_option("--actors", names.actors, "client, server")->delimiter(',');
  app.add_option("--sizes", options.sizes, "bytes")->delimiter(',');
  app.add_option("--rounds", options.rounds, "how often all of it is done");
  app.add_option("--fault", names.fault,
                 "wrong_stag, out_of_bounds, before_base, no_right, invalidated, no_receive, "
                 "too_long");
}

void add_connections(CLI::App& app, Options& options) {
  app.add_option("--connections", options.connections, "one after the other");
  app.add_flag("--parallel", options.parallel, "all connections at once");
  app.add_option("--dials", options.dials, "so many of them may be connecting at a time");
  app.add_option("--private-data", options.private_data, "bytes, verified at the other side");
  app.add_option("--rejects", options.rejects, "server: reject so many requests first");
  app.add_flag("--expect-reject", options.expect_reject, "client: the server will reject");
  app.add_flag("--greet", options.greet, "the server speaks first (give it to both)");
  app.add_flag("--expect-end", options.expect_end, "the other side will break the connection");
  app.add_option("--die-after", options.die_after, "exit in the midst of this step");
}

void add_limits(CLI::App& app, Options& options, Names& names) {
  app.add_option("--receives", options.receives, "receives that are kept posted");
  app.add_option("--slot-size", options.slot_size, "bytes of each");
  app.add_option("--source", options.source, "client: connect from this address (siw)");
  app.add_flag("--tells-all", options.tells_all,
               "the device has solicited events, and tells what was invalidated (siw's does not)");
  app.add_option("--timeout", names.timeout, "seconds of any one wait");
  app.add_option("--limit", options.limit, "seconds for the whole run");
}

void add_mpa(CLI::App& app, Options& options) {
  app.add_flag("--crc,!--no-crc", options.crc, "ask for CRCs (diwarp)");
  app.add_option("--revision", options.revision, "of MPA (diwarp)");
  app.add_flag("--peer-to-peer", options.peer_to_peer, "(diwarp)");
  app.add_flag("--markers", options.markers, "ask for markers (diwarp)");
  app.add_option("--depth", options.depth, "ORD and IRD");
}

void resolve(const Names& names, Options& options) {
  options.ops.clear();
  std::transform(names.ops.begin(), names.ops.end(), std::back_inserter(options.ops), parse_op);
  options.actors.clear();
  std::transform(names.actors.begin(), names.actors.end(), std::back_inserter(options.actors),
                 parse_actor);
  options.fault = parse_fault(names.fault);
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(names.timeout * 1000));
}

}  // namespace

bool parse_options(int argc, char** argv, Options& options, int& status) {
  CLI::App app{"One end of an interoperability test"};
  Names names;
  app.add_flag("--server", options.server, "listen");
  app.add_option("--address", options.address, "to listen on or to connect to")->required();
  app.add_option("--device", options.device, "to open, by its name or an address (diwarp)");
  app.add_option("--port", options.ports, "TCP port; a parallel client may be given several")
      ->delimiter(',')
      ->required();
  add_steps(app, options, names);
  add_connections(app, options);
  add_limits(app, options, names);
  add_mpa(app, options);
  try {
    app.parse(argc, argv);
    resolve(names, options);
    options.port = options.ports.front();
  } catch (const CLI::ParseError& error) {
    status = app.exit(error);
    return false;
  }
  return true;
}

}  // namespace interop
