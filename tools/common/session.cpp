// SPDX-License-Identifier: Apache-2.0
#include "common/session.h"

#include <diwarp/error.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "common/device_choice.h"
#include "common/failure.h"
#include "common/processes.h"

namespace diwarp::tools {
namespace {

/// Raised with every change of what the two ends say to each other.
constexpr uint64_t kProtocolVersion = 8;
constexpr uint64_t kMaxRows = 10'000;

Json greeting(const std::string& tool, const Terms& terms) {
  return {{"type", "hello"},
          {"tool", tool},
          {"version", kProtocolVersion},
          {"transport", to_string(terms.transport)},
          {"op", info_of(terms.operation).name},
          {"verify", terms.verify},
          {"segment", terms.segment},
          {"completion", to_string(terms.completion)},
          {"congestion", to_string(terms.congestion)},
          {"streams", terms.streams},
          {"bidirectional", terms.bidirectional},
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
  terms.completion = parse_completion(text_in(hello, "completion"));
  terms.congestion = parse_congestion(text_in(hello, "congestion"));
  terms.streams = static_cast<uint32_t>(number_in(hello, "streams", 1, kMaxStreams));
  terms.bidirectional = flag_in(hello, "bidirectional");
  terms.rows = number_in(hello, "rows", 0, kMaxRows);
  terms.token = number_in(hello, "token", 0, UINT64_MAX);
  return terms;
}

uint64_t draw_token() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

/// How long a dying peer may take until its control connection shows it.
constexpr Duration kFateWait = std::chrono::seconds(2);
constexpr Duration kFateLook = std::chrono::milliseconds(10);  // at one of them
/// For the peers to end, once they know why this end stops.
constexpr Duration kFarewell = std::chrono::seconds(1);

void send_error(const Peers& peers, std::string_view message) {
  for (Control& control : peers) control.send_error(message);
  const Time deadline = std::chrono::steady_clock::now() + kFarewell;
  for (Control& control : peers) control.drain(deadline);
}

/// The reason why a connection broke is that a peer died, if one did; next, that one stopped. The
/// peers wait for that from this end, too, so none is waited for while another may have died.
[[noreturn]] void explain(const Peers& peers, const std::exception& broken) {
  const Time deadline = std::chrono::steady_clock::now() + kFateWait;
  std::optional<PeerStopped> stopped;
  while (!stopped && std::chrono::steady_clock::now() < deadline) {
    for (Control& control : peers) {
      try {
        control.check_fate(std::chrono::steady_clock::now() + kFateLook);
      } catch (const PeerStopped& told) {
        if (!stopped) stopped = told;
      }
    }
  }
  if (stopped) throw *stopped;
  throw Failure(sentence_of(broken));
}

/// Runs one end; the peers learn what ended it.
void guarded(const Peers& peers, const std::function<void()>& end) {
  try {
    try {
      end();
    } catch (const LinkDown& broken) {
      explain(peers, broken);
    } catch (const Error& broken) {
      explain(peers, broken);
    }
  } catch (const PeerGone& gone) {
    if (peers.size() > 1) send_error(peers, sentence_of(gone));
    throw;
  } catch (const std::exception& reason) {
    send_error(peers, sentence_of(reason));
    throw;
  }
}

/// The others may take their time to come.
void await_start(Control& control, uint32_t clients) {
  if (clients > 1)
    control.expect("start", 2 * control.timeout());
  else
    control.expect("start");
}

void play_client(const std::string& tool, const std::vector<Address>& servers, const Ends& ends,
                 Terms& terms, const Plays& plays) {
  std::vector<Control> controls;
  for (const Address& server : servers) {
    Control& control = controls.emplace_back(Control::connect(server, ends.timeout));
    control.send(greeting(tool, terms));
    const Json welcome = control.expect("welcome");
    terms.clients = static_cast<uint32_t>(number_in(welcome, "clients", 1, kMaxClients));
    terms.client = static_cast<uint32_t>(number_in(welcome, "client", 0, terms.clients - 1));
    if (terms.clients > 1 && servers.size() > 1)
      throw Failure("The server at " + server.to_string() +
                    " waits for several clients: a group's servers serve one each.");
  }
  const Peers peers{std::span(controls)};
  guarded(peers, [&] {
    for (Control& control : peers) await_start(control, terms.clients);
    plays.client(peers);
    peers.send({{"type", "bye"}});
  });
}

/// Scripts wait for these lines, so they leave at once: not into the rows that go to standard
/// output.
void announce(const std::string& tool, const Ends& ends, const char* what, const Address& where) {
  std::FILE* const file = ends.json_file == "-" || ends.csv_file == "-" ? stderr : stdout;
  std::fprintf(file, "%s: %s %s\n", tool.c_str(), what, where.to_string().c_str());
  std::fflush(file);
}

/// The clients that have come to a server.
struct Guests {
  std::vector<Control> controls;
  std::vector<Terms> terms;
};

/// Takes the peer in if it is a client; a stranger is refused.
void welcome(const std::string& tool, UniqueFd peer, const Ends& ends, Guests& guests) {
  std::optional<Control> control;
  try {
    control.emplace(std::move(peer), ends.timeout);
    Terms terms = read_greeting(tool, control->expect("hello"));
    if (!guests.terms.empty() && guests.terms.front().rows != terms.rows)
      throw Failure("The clients of one server measure as many sizes each.");
    terms.client = static_cast<uint32_t>(guests.terms.size());
    terms.clients = ends.clients;
    control->send({{"type", "welcome"}, {"clients", terms.clients}, {"client", terms.client}});
    if (ends.role == Role::server) announce(tool, ends, "serving", control->peer_address());
    guests.controls.push_back(std::move(*control));
    guests.terms.push_back(terms);
  } catch (const Failure& stranger) {
    if (control) control->send_error(sentence_of(stranger));
    std::fprintf(stderr, "%s: refused a peer: %s\n", tool.c_str(), sentence_of(stranger).c_str());
  }
}

/// The first may take any time, the others may not let it wait for longer than the peers do.
void await_guests(const std::string& tool, ControlListener& listener, const Ends& ends,
                  Guests& guests) {
  while (guests.controls.empty()) {
    const bool started = ends.role == Role::loopback;
    const auto timeout = started ? std::optional(ends.timeout) : ends.accept_timeout;
    welcome(tool, listener.accept(timeout), ends, guests);
  }
  const Time deadline = std::chrono::steady_clock::now() + ends.timeout;
  while (guests.controls.size() < ends.clients) {
    std::optional<UniqueFd> peer = listener.try_accept(deadline);
    if (!peer)
      throw Failure("Only " + std::to_string(guests.controls.size()) + " of " +
                    std::to_string(ends.clients) + " clients came within " + to_text(ends.timeout) +
                    ".");
    welcome(tool, std::move(*peer), ends, guests);
  }
}

void serve(const std::string& tool, ControlListener& listener, const Ends& ends,
           const Plays& plays) {
  Guests guests;
  try {
    await_guests(tool, listener, ends, guests);
  } catch (const std::exception& reason) {
    send_error(Peers(std::span(guests.controls)), sentence_of(reason));
    throw;
  }
  const Peers peers{std::span(guests.controls)};
  guarded(peers, [&] {
    peers.send({{"type", "start"}});
    plays.server(peers, guests.terms);
    for (Control& control : peers) control.expect("bye");
  });
}

void play_server(const std::string& tool, const Ends& ends, const Plays& plays) {
  ControlListener listener(ends.address);
  announce(tool, ends, "listening at", listener.address());
  serve(tool, listener, ends, plays);
}

/// The client in this process, and as many servers as there are addresses.
void play_servers_beside(const std::string& tool, const Ends& ends, Terms& terms,
                         const Plays& plays) {
  std::deque<ControlListener> listeners;
  std::vector<Address> addresses;
  std::vector<std::function<void()>> servers;
  for (const Address& address : ends.servers()) {
    ControlListener& listener = listeners.emplace_back(address);
    addresses.push_back(listener.address());
    servers.emplace_back([&] {
      capture_at_the_first_end();
      serve(tool, listener, ends, plays);
    });
  }
  run_processes(servers, [&] { play_client(tool, addresses, ends, terms, plays); });
}

/// The server in this process, and several clients.
void play_clients_beside(const std::string& tool, const Ends& ends, Terms& terms,
                         const Plays& plays) {
  ControlListener listener(ends.address);
  std::vector<std::function<void()>> clients;
  for (uint32_t client = 0; client < ends.clients; ++client) {
    clients.emplace_back([&, client] {
      if (client > 0) capture_at_the_first_end();
      terms.token = draw_token();
      play_client(tool, {listener.address()}, ends, terms, plays);
    });
  }
  run_processes(clients, [&] {
    capture_at_the_first_end();
    serve(tool, listener, ends, plays);
  });
}

void play_loopback(const std::string& tool, const Ends& ends, Terms& terms, const Plays& plays) {
  if (ends.clients > 1) return play_clients_beside(tool, ends, terms, plays);
  play_servers_beside(tool, ends, terms, plays);
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
