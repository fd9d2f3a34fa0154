// SPDX-License-Identifier: Apache-2.0
/// One end of the tests between network namespaces. Prints JSON, a line each.
#include <cstdio>
#include <exception>

#include "endpoint.h"

int main(int argc, char** argv) {
  int status = 0;
  CLI::App app("One end of an exchange over datagrams");
  app.require_subcommand(1);
  network::add_target(*app.add_subcommand("target", "takes what is sent"), status);
  network::add_source(*app.add_subcommand("source", "sends"), status);
  network::add_reader(*app.add_subcommand("reader", "reads a target's memory"), status);
  try {
    CLI11_PARSE(app, argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "network_peer: %s\n", error.what());
    return 1;
  }
  return status;
}
