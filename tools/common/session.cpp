// SPDX-License-Identifier: Apache-2.0
#include "common/session.h"

#include <diwarp/error.h>

#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <random>

#include "common/failure.h"
#include "common/processes.h"

namespace diwarp::tools {
namespace {

/// Raised with every change of what the two ends say to each other.
constexpr uint64_t kProtocolVersion = 5;
constexpr uint64_t kMaxRows = 10'000;

Json greeting(const std::string& tool, const Terms& terms) {
  return {{"type", "hello"},
          {"tool", tool},
          {"version", kProtocolVersion},
          {"transport", to_string(terms.transport)},
          {"op", info_of(terms.operation).name},
          {"verify", terms.verify},
          {"segment", terms.segment},
          {"rows", terms.rows},
          {"token", terms.token}};
}

Terms read_greeting(const std::string& tool, const Json& hello) {
  const std::string other = text_in(hello, "tool");
  if (other != tool || number_in(hello, "version", 0, UINT64_MAX) != kProtocolVersion) {
    throw Failure("This is " + tool + ", version " + std::to_string(kProtocolVersion) +
                  " of its protocol: both ends must be the same.");
  }
  Terms terms;
  terms.transport = parse_transport(text_in(hello, "transport"));
  terms.operation = parse_operation(text_in(hello, "op"));
  check_transport(terms.operation, terms.transport);
  terms.verify = flag_in(hello, "verify");
  terms.segment = text_in(hello, "segment");
  parse_segment(terms.segment);
  terms.rows = number_in(hello, "rows", 0, kMaxRows);
  terms.token = number_in(hello, "token", 0, UINT64_MAX);
  return terms;
}

uint64_t draw_token() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

void send_error(const Peers& peers, std::string_view message) {
  for (Control& control : peers) control.send_error(message);
}

/// The reason why a connection broke is that the peer died, if it did.
[[noreturn]] void explain(const Peers& peers, const std::exception& broken) {
  for (Control& control : peers) {
    const std::string fate = control.fate_of_peer();
    if (!fate.empty()) throw PeerGone(fate);
  }
  send_error(peers, broken.what());
  throw Failure(broken.what());
}

/// Runs one end; the peers learn what ended it.
void guarded(const Peers& peers, const std::function<void()>& end) {
  try {
    end();
  } catch (const PeerGone& gone) {
    if (peers.size() > 1) send_error(peers, gone.what());
    throw;
  } catch (const LinkDown& broken) {
    explain(peers, broken);
  } catch (const Error& broken) {
    explain(peers, broken);
  } catch (const std::exception& reason) {
    send_error(peers, reason.what());
    throw;
  }
}

void play_client(const std::string& tool, const std::vector<Address>& servers, const Ends& ends,
                 const Terms& terms, const Plays& plays) {
  std::vector<Control> controls;
  for (const Address& server : servers) {
    Control& control = controls.emplace_back(Control::connect(server, ends.timeout));
    control.send(greeting(tool, terms));
    control.expect("welcome");
  }
  const Peers peers{std::span(controls)};
  guarded(peers, [&] {
    plays.client(peers);
    peers.send({{"type", "bye"}});
  });
}

/// Scripts wait for these lines, so they leave at once.
void announce(const std::string& tool, const char* what, const Address& where) {
  std::printf("%s: %s %s\n", tool.c_str(), what, where.to_string().c_str());
  std::fflush(stdout);
}

/// True if this peer was a client and its run is over; false if it was a stranger, who is refused.
bool serve(const std::string& tool, UniqueFd peer, const Ends& ends, const Plays& plays) {
  Terms terms;
  std::optional<Control> control;
  try {
    control.emplace(std::move(peer), ends.timeout);
    terms = read_greeting(tool, control->expect("hello"));
    control->send({{"type", "welcome"}});
    if (ends.role == Role::server) announce(tool, "serving", control->peer_address());
  } catch (const Failure& stranger) {
    if (control) control->send_error(stranger.what());
    std::fprintf(stderr, "%s: refused a peer: %s\n", tool.c_str(), stranger.what());
    return false;
  }
  guarded(*control, [&] {
    plays.server(*control, terms);
    control->expect("bye");
  });
  return true;
}

void play_server(const std::string& tool, const Ends& ends, const Plays& plays) {
  ControlListener listener(ends.address);
  announce(tool, "listening at", listener.address());
  while (!serve(tool, listener.accept(ends.accept_timeout), ends, plays)) {
  }
}

void play_loopback(const std::string& tool, const Ends& ends, const Terms& terms,
                   const Plays& plays) {
  std::deque<ControlListener> listeners;
  std::vector<Address> addresses;
  std::vector<std::function<void()>> servers;
  for (const Address& address : ends.servers()) {
    ControlListener& listener = listeners.emplace_back(address);
    addresses.push_back(listener.address());
    servers.emplace_back([&] { serve(tool, listener.accept(ends.timeout), ends, plays); });
  }
  run_processes(servers, [&] { play_client(tool, addresses, ends, terms, plays); });
}

}  // namespace

void run_session(const std::string& tool, const Ends& ends, Terms& terms, const Plays& plays) {
  terms.token = draw_token();
  switch (ends.role) {
    case Role::server:
      return play_server(tool, ends, plays);
    case Role::client:
      return play_client(tool, ends.servers(), ends, terms, plays);
    case Role::loopback:
      return play_loopback(tool, ends, terms, plays);
  }
}

}  // namespace diwarp::tools
