// SPDX-License-Identifier: Apache-2.0
// One program on one address with one completion queue and one channel: a reliable connection, and
// queue pairs of types ud and rd, all at once. The server answers each message with its bytes and
// sleeps between them. At the end its memory is written by both ways under one STag, and the STag
// is invalidated; or the client makes a mistake over the reliable connection, which ends, and both
// go on over datagrams. Reports one JSON line; exit status 0 if all went well.
#include "hybrid_end.h"

#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <thread>

namespace {

using namespace hybrid;

using Ways = std::vector<Way>;

struct Options {
  std::string device = "127.0.0.1";
  std::string peer;  // empty: server
  uint16_t port = 7180;
  uint32_t rounds = 10'000;
  uint32_t single = 100;
  Way invalidate_by = kRd;
  std::string mistake;
};

std::span<const std::byte> bytes_of(const Greeting& greeting) {
  return std::as_bytes(std::span(&greeting, 1));
}

Greeting greeting_in(std::span<const std::byte> data) {
  Greeting greeting{};
  require(data.size() >= sizeof greeting, "the peer's greeting is too short");
  std::memcpy(&greeting, data.data(), sizeof greeting);
  return greeting;
}

// --- The server.

/// What the peer may write, and wrote; nothing else.
void check_target(End& end, bool written) {
  for (size_t i = 0; i < end.target().size(); ++i) {
    const bool part = i < kPart || (i >= kRecordAt && i < kRecordAt + kPart);
    require(end.target()[i] == pattern(written && part ? 11 : 7, i),
            "the bytes that the peer writes are others, at " + std::to_string(i));
  }
}

void await_record(End& end) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (end.records() == 0) {
    require(!end.receive(10ms), "a message came too early");
    require(std::chrono::steady_clock::now() < deadline, "no Write-Record comes");
  }
}

/// A device may not tell of an invalidation that came over RC: then software's half stays valid.
void check_invalidated(End& end, const Message& message) {
  const bool told = message.way != kRc || end.tells_invalidations();
  require(message.completion.invalidated == told,
          told ? "the invalidation is not told" : "an invalidation is told");
  require(end.region().valid() != told, "whether the region is valid is not as it was told");
}

void do_step(End& end, const Message& message, bool& written) {
  if (message.number == kWritten) {
    await_record(end);
    written = true;
  }
  if (message.number == kInvalidated) check_invalidated(end, message);
  if (message.number == kWithdraw) end.withdraw();
  if (message.number == kStarve) end.starve();
  if (message.number == kOver) end.await_end();
  if (message.number == kWritten || message.number == kOver) check_target(end, written);
}

/// Answers until the peer is done.
void serve(End& end, const Options& options) {
  Listener listener(end.device(), options.port);
  std::printf("listening\n");
  std::fflush(stdout);
  auto request = listener.get_request(kPatience);
  require(request.has_value(), "nobody connects");
  end.set_peer(greeting_in(request->private_data()), request->peer_address());
  const Greeting own = end.greeting();
  request->accept(end.qp(kRc), {.private_data = bytes_of(own)});
  std::array<unsigned long long, kWays> counts{};
  bool written = false;
  for (bool over = false; !over;) {
    const auto message = end.receive(kPatience);
    require(message.has_value(), "no message comes");
    ++counts[message->way];
    do_step(end, *message, written);
    over = message->number == kOver;
    if (!over && message->number != kUnanswered) end.send(message->way, message->number);
  }
  std::printf("{\"ok\": true, \"wakes\": %llu, \"rc\": %llu, \"ud\": %llu, \"rd\": %llu}\n",
              static_cast<unsigned long long>(end.wakes()), counts[kRc], counts[kUd], counts[kRd]);
}

// --- The client.

void expect_answer(End& end, Way way, uint64_t number) {
  for (;;) {
    const auto message = end.receive(kPatience);
    require(message.has_value(), "no answer comes over " + std::string(kNames[way]));
    if (message->way == way && message->number == number) return;
  }
}

void ask(End& end, Way way, uint64_t number) {
  end.send(way, number);
  expect_answer(end, way, number);
}

/// One message at a time, each to a server that sleeps: no other one wakes it if this does not.
void go_singly(End& end, uint32_t count) {
  for (uint64_t number = 1; number <= count; ++number) {
    for (const Way way : {kRc, kUd, kRd}) {
      std::this_thread::sleep_for(1ms);
      ask(end, way, number);
    }
  }
}

/// One message each way, and the answers; one over UD is sent again where nothing comes.
uint64_t go_round(End& end, const Ways& ways, uint64_t number) {
  for (const Way way : ways) end.send(way, number);
  Ways open = ways;
  uint64_t again = 0;
  while (!open.empty()) {
    const bool only_ud = open == Ways{kUd};
    const auto message = end.receive(only_ud ? kUdPatience : kPatience);
    if (!message) {
      require(only_ud && ++again < 100, "no answer comes");
      end.send(kUd, number);
      continue;
    }
    if (message->number == number) std::erase(open, message->way);  // others: late duplicates
  }
  return again;
}

/// Numbers begin after `from`.
uint64_t go_rounds(End& end, const Ways& ways, uint64_t from, uint32_t rounds) {
  uint64_t again = 0;
  for (uint64_t number = from + 1; number <= from + rounds; ++number)
    again += go_round(end, ways, number);
  return again;
}

void check_status(Way way, WcStatus status, WcStatus wanted) {
  require(status == wanted, "a request over " + std::string(kNames[way]) + ": " +
                                std::string(to_string(status)) + ", not " +
                                std::string(to_string(wanted)));
}

void read_by_datagrams(End& end, WcStatus wanted) {
  for (const Way way : {kUd, kRd})
    check_status(way, end.access(way, WrOpcode::rdma_read, 0, end.remote(0)), wanted);
}

/// A Write that the peer refuses; it may tell this code of DDP's, or close only. The server takes
/// one message after the other: once it has answered here, its last Send over RC is complete.
void write_in_vain(End& end, RemoteMemory remote, uint8_t code) {
  ask(end, kRd, 0);
  const uint64_t at = 2 * kRecordAt;
  for (size_t i = 0; i < kPart; ++i) end.target()[at + i] = pattern(13, i);
  const WcStatus status = end.access(kRc, WrOpcode::rdma_write, at, remote);
  if (status != WcStatus::success) check_status(kRc, status, WcStatus::wr_flush_error);
  end.await_end();
  const auto terminate = end.qp(kRc).query().terminate;
  require(!terminate || terminate->code == TerminateCode{.layer = 1, .type = 1, .code = code},
          terminate ? "the peer says: " + to_string(terminate->code) : "");
  std::printf("refused: %s\n", terminate ? to_string(terminate->code).c_str() : "closed");
}

/// Both ways write into the peer's region under one STag; then it is invalidated.
void use_one_region(End& end, Way invalidate_by) {
  read_by_datagrams(end, WcStatus::success);
  for (size_t i = 0; i < kPart; ++i)
    require(end.target()[i] == pattern(7, i), "the Read's bytes are others");
  for (size_t i = 0; i < end.target().size(); ++i) end.target()[i] = pattern(11, i);
  check_status(kRc, end.access(kRc, WrOpcode::rdma_write, 0, end.remote(0)), WcStatus::success);
  check_status(kRd, end.access(kRd, WrOpcode::write_record, kRecordAt, end.remote(kRecordAt)),
               WcStatus::success);
  ask(end, kRc, kWritten);

  end.send(invalidate_by, kInvalidated, end.remote(0).stag);
  expect_answer(end, invalidate_by, kInvalidated);
  if (invalidate_by == kRc && !end.peer().tells_invalidations) {
    read_by_datagrams(end, WcStatus::success);
    ask(end, kRd, kWithdraw);
  }
  read_by_datagrams(end, WcStatus::remote_access_error);
  write_in_vain(end, end.remote(0), 0);
}

/// As many messages as there are receives, and one more, which finds none.
void send_without_receives(End& end) {
  ask(end, kRd, kStarve);
  for (uint32_t i = 0; i < kDepth; ++i) end.send(kRc, kUnanswered);
  static_cast<void>(end.try_send(kRc, kUnanswered));  // TCP takes it, or the connection has ended
  end.await_end();
}

// Name, and what is done over the reliable connection.
const std::map<std::string, void (*)(End&)> kMistakes = {
    {"wrong_rkey",
     [](End& end) {
       write_in_vain(end, {0x5A5A5A00, end.remote(0).offset}, 0);
     }},
    {"beyond",
     [](End& end) { write_in_vain(end, end.remote(end.target().size() - kPart / 2), 1); }},
    {"no_receive", send_without_receives},
};

void connect(End& end, const Address& peer) {
  const Greeting own = end.greeting();
  end.set_peer(greeting_in(end.qp(kRc).connect(peer, {.private_data = bytes_of(own)})), peer);
}

// --- A client whose reliable connection is a socket.

void read_exactly(int socket, std::span<std::byte> to) {
  require(::recv(socket, to.data(), to.size(), MSG_WAITALL) == static_cast<ssize_t>(to.size()),
          "the peer's MPA reply is too short");
}

int open_socket(const Address& peer) {
  sockaddr_storage name;
  const socklen_t length = peer.to_sockaddr(name);
  const int socket = ::socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 60, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  require(::connect(socket, reinterpret_cast<sockaddr*>(&name), length) == 0, "connect() fails");
  return socket;
}

/// MPA's start-up in revision 1, without CRCs (RFC 5044 section 7.1.1).
void start_mpa(End& end, int socket, const Address& peer) {
  const Greeting own = end.greeting();
  std::array<std::byte, 20 + sizeof own> frame{};
  std::memcpy(frame.data(), "MPA ID Req Frame", 16);
  frame[17] = std::byte{1};
  frame[19] = std::byte{sizeof own};
  std::memcpy(frame.data() + 20, &own, sizeof own);
  require(::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL) == ssize_t{sizeof frame},
          "the MPA request is not sent");
  read_exactly(socket, frame);
  require(std::memcmp(frame.data(), "MPA ID Rep Frame", 16) == 0, "the reply is none of MPA's");
  end.set_peer(greeting_in(std::span(frame).subspan(20)), peer);
}

/// Bytes that are no FPDU, after the start-up, and more than the length in them says. Returns when
/// the peer has ended the connection.
void send_garbage(End& end, const Address& peer) {
  const int socket = open_socket(peer);
  start_mpa(end, socket, peer);
  std::vector<std::byte> bytes(0x10000, std::byte{0xA5});
  static_cast<void>(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  ssize_t count = 1;
  while (count > 0) count = ::recv(socket, bytes.data(), bytes.size(), 0);
  require(count == 0 || errno == ECONNRESET, "the peer does not end the connection");
  ::close(socket);
}

// --- The program.

/// All of the client's part; returns how many messages over UD were sent again.
uint64_t converse(End& end, const Options& options) {
  const Address peer = Address::parse(options.peer).with_port(options.port);
  if (options.mistake == "garbage") {
    send_garbage(end, peer);
    return go_rounds(end, {kUd, kRd}, 0, options.rounds);
  }
  connect(end, peer);
  go_singly(end, options.single);
  uint64_t again = go_rounds(end, {kRc, kUd, kRd}, options.single, options.rounds);
  if (options.mistake.empty()) {
    use_one_region(end, options.invalidate_by);
  } else {
    kMistakes.at(options.mistake)(end);
    again += go_rounds(end, {kUd, kRd}, options.single + options.rounds, options.rounds);
  }
  return again;
}

void run_client(End& end, const Options& options) {
  const uint64_t again = converse(end, options);
  end.send(kRd, kOver);
  std::printf("{\"ok\": true, \"rounds\": %u, \"wakes\": %llu, \"ud_again\": %llu}\n",
              options.rounds, static_cast<unsigned long long>(end.wakes()),
              static_cast<unsigned long long>(again));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const std::map<std::string, Way> ways = {{"rc", kRc}, {"rd", kRd}};
  CLI::App app("A reliable connection and queue pairs over datagrams on one address");
  app.add_option("--device", options.device, "name or address");
  app.add_option("--peer", options.peer, "the server's address; without it this is the server");
  app.add_option("--port", options.port, "of the server's listener");
  app.add_option("--single", options.single, "messages of each kind, one at a time, client");
  app.add_option("--rounds", options.rounds, "messages of each kind, all kinds at once, client");
  app.add_option("--invalidate-by", options.invalidate_by, "rc or rd, client")
      ->transform(CLI::CheckedTransformer(ways));
  app.add_option("--mistake", options.mistake, "of the client's, over the reliable connection")
      ->check(CLI::IsMember({"wrong_rkey", "beyond", "no_receive", "garbage"}));
  CLI11_PARSE(app, argc, argv);
  try {
    End end(options.device);
    if (options.peer.empty())
      serve(end, options);
    else
      run_client(end, options);
    return 0;
  } catch (const std::exception& error) {
    std::printf("{\"ok\": false, \"error\": \"%s\"}\n", error.what());
    return 1;
  }
}
