// SPDX-License-Identifier: Apache-2.0
// A program of libibverbs and librdmacm that makes calls at random, with right and wrong arguments,
// from a seed, and then destroys all that it has. It ends with status 1 where a call did what it
// must not, and by a signal, or the sanitizers' status, where the libraries crashed.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "drop_in/random/world.h"

namespace {

using random_calls::Call;
using random_calls::World;

/// Longer than any call takes on the slowest machine. None may wait for a peer.
constexpr unsigned kPatience = 100;

const char* volatile call_under_way = "none";

/// A call did not return: the program says which, and ends.
void tell_hang(int) {
  constexpr char kText[] = "random_calls: this call does not return: ";
  const char* const name = call_under_way;
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  written = ::write(STDERR_FILENO, name, std::strlen(name));
  written = ::write(STDERR_FILENO, "\n", 1);
  ::_exit(3);
}

struct Tally {
  uint64_t made = 0;
  uint64_t succeeded = 0;
};

/// All kinds of calls, each as often as its weight says.
class Calls {
 public:
  Calls() {
    for (const auto& some : {random_calls::device_calls(), random_calls::memory_calls(),
                             random_calls::queue_calls(), random_calls::queue_pair_calls(),
                             random_calls::post_calls(), random_calls::datagram_calls(),
                             random_calls::id_calls(), random_calls::connection_calls()})
      for (const Call& call : some) add(call);
  }

  void make_one(World& world) {
    const size_t kind = lots_[world.random.below(lots_.size())];
    call_under_way = kinds_[kind].name;
    ++tallies_[kind].made;
    if (kinds_[kind].run(world)) ++tallies_[kind].succeeded;
  }

  void print() const {
    for (size_t i = 0; i < kinds_.size(); ++i)
      std::cout << kinds_[i].name << ": " << tallies_[i].succeeded << " of " << tallies_[i].made
                << " succeeded\n";
  }

 private:
  void add(const Call& call) {
    lots_.insert(lots_.end(), call.weight, kinds_.size());
    kinds_.push_back(call);
    tallies_.emplace_back();
  }

  std::vector<Call> kinds_;
  std::vector<Tally> tallies_;
  std::vector<size_t> lots_;  // the index of each kind, as often as its weight says
};

struct Options {
  uint64_t seed = std::random_device{}();
  uint64_t calls = 100'000;
  bool leave_open = false;
};

void run(const Options& options) {
  World world(options.seed);
  Calls calls;
  uint64_t made = 0;
  try {
    for (; made < options.calls; ++made) {
      if (made % 256 == 0) ::alarm(kPatience);
      calls.make_one(world);
    }
    if (options.leave_open) std::exit(0);
    call_under_way = "the destruction of everything";
    random_calls::destroy_all(world);
  } catch (const std::exception& error) {
    std::cerr << "random_calls: call " << made << " (" << call_under_way << "): " << error.what()
              << "\n";
    std::_Exit(1);  // the libraries still have what the program's memory is for
  }
  ::alarm(0);
  calls.print();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Random calls of libibverbs and librdmacm");
  Options options;
  app.add_option("--seed", options.seed, "Where the choices come from; without it a random one");
  app.add_option("--calls", options.calls, "How many calls")->capture_default_str();
  app.add_flag("--leave-open", options.leave_open, "Exit, and destroy nothing");
  CLI11_PARSE(app, argc, argv);
  // A device on loopback alone, beside those on all addresses.
  ::setenv("DIWARP_RUN_DEVICES", "loopback=127.0.0.1", 1);
  ::signal(SIGALRM, tell_hang);
  std::cout << "random_calls --seed " << options.seed << " --calls " << options.calls << std::endl;
  run(options);
}
