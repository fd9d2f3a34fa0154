// SPDX-License-Identifier: Apache-2.0
/// One process of a soak (README.md). The lines of its input tell it what to do; it prints JSON,
/// and what is for its peers.
#include <sys/prctl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>

#include "soak/peer.h"

namespace {

/// The status with which a process ends that cannot go on within its limits.
constexpr int kLimited = 3;

void limit(int resource, uint64_t most) {
  const rlimit wanted{most, most};
  if (most != 0) ::setrlimit(static_cast<__rlimit_resource_t>(resource), &wanted);
}

void add_options(CLI::App& app, soak::Settings& settings) {
  app.add_option("--address", settings.address, "of this host")->required();
  app.add_option("--seed", settings.seed, "of the run");
  app.add_option("--index", settings.index, "of this process")
      ->check(CLI::Range(0u, soak::kMostPeers - 1));
  app.add_option("--life", settings.life, "number of this start, unique in the run");
  app.add_option("--stuck", settings.stuck, "seconds that an operation may take");
  app.add_option("--round", settings.round, "seconds between two lines");
  app.add_flag("!--unimpaired", settings.impaired, "datagrams are not impaired");
  app.add_option("--descriptors", settings.descriptors, "at most so many (RLIMIT_NOFILE)");
  app.add_option("--address-space", settings.address_space, "at most so many bytes (RLIMIT_AS)");
  app.add_flag("--core", settings.core, "a finding ends the process with a core dump");
  app.add_option("--plant", settings.plant, "a fault that the soak must find")->group("");
}

}  // namespace

int main(int argc, char** argv) {
  soak::Settings settings;
  CLI::App app("One process of a soak");
  add_options(app, settings);
  CLI11_PARSE(app, argc, argv);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also where it is stopped, and reads no end of its input
  limit(RLIMIT_NOFILE, settings.descriptors);
  limit(RLIMIT_AS, settings.address_space);
  try {
    return soak::Peer(settings).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak_peer: %s\n", error.what());
    return settings.descriptors != 0 || settings.address_space != 0 ? kLimited : 1;
  }
}
