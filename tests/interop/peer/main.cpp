// SPDX-License-Identifier: Apache-2.0
// The program around an exchange: one connection or many, and one line of JSON for the driver.
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <iostream>
#include <memory>
#include <mutex>
#include <semaphore>
#include <thread>
#include <vector>

#include "endpoint.h"
#include "exchange.h"
#include "options.h"

namespace {

using namespace interop;

/// The outcome of all connections of this process.
class Report {
 public:
  void add(const Outcome& outcome, const std::string& negotiated) {
    const std::lock_guard lock(mutex_);
    ++connections_;
    steps_ += outcome.steps;
    bytes_ += outcome.bytes;
    last_ = outcome;
    negotiated_ = negotiated;
  }
  void add_failure(const std::string& message) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = message;
  }
  bool print() const;

 private:
  mutable std::mutex mutex_;
  uint64_t connections_ = 0;
  uint64_t steps_ = 0;
  uint64_t bytes_ = 0;
  Outcome last_;
  std::string negotiated_;
  std::string failure_;
};

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + '"';
}

bool Report::print() const {
  const std::lock_guard lock(mutex_);
  std::cout << "{\"ok\": " << (failure_.empty() ? "true" : "false")
            << ", \"connections\": " << connections_ << ", \"steps\": " << steps_
            << ", \"bytes\": " << bytes_ << ", \"status\": " << quoted(last_.failed_status)
            << ", \"event\": " << quoted(last_.ending.event)
            << ", \"terminate\": " << quoted(last_.ending.terminate)
            << ", \"negotiated\": " << quoted(negotiated_) << ", \"failure\": " << quoted(failure_)
            << "}" << std::endl;
  return failure_.empty();
}

/// Where all connections of a process meet, so that none ends before the last has begun.
class Meeting {
 public:
  explicit Meeting(uint32_t expected) : missing_(expected) {}
  void arrive() {
    const std::lock_guard lock(mutex_);
    if (missing_ > 0 && --missing_ == 0) all_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    all_.wait(lock, [this] { return missing_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  uint32_t missing_;
};

/// The private data that a side sends: its pattern, in both peers.
void verify_private_data(const Endpoint& endpoint, const Options& options) {
  if (options.private_data == 0) return;
  const auto data = endpoint.peer_private_data();
  // The kernel's connection manager hands on a buffer that may be longer than what came.
  if (data.size() < options.private_data ||
      first_difference(std::span(data).first(options.private_data), options.server ? 1 : 2)) {
    throw Failure("private data are not the peer's (" + std::to_string(data.size()) + " bytes)");
  }
}

void converse(Exchange& exchange, Endpoint& endpoint, const Options& options, Meeting* meeting) {
  verify_private_data(endpoint, options);
  options.server ? exchange.run_server() : exchange.run_client();
  if (meeting != nullptr) {
    meeting->arrive();
    meeting->wait();
  }
  exchange.part();
  Ending& ending = exchange.outcome().ending;
  if (!options.server && !ending.ended) endpoint.disconnect();
  if (!ending.ended) ending = endpoint.wait_ended(options.timeout);
  if (!ending.ended) throw Failure("the connection did not end");
}

/// One connection from its first message to its end; the message of an exception becomes the
/// report's.
void converse_and_report(Endpoint& endpoint, const Options& options, Meeting* meeting,
                         Report& report) {
  Exchange exchange(endpoint, options);
  Outcome& outcome = exchange.outcome();
  try {
    converse(exchange, endpoint, options, meeting);
    if (options.expect_end) throw Failure("the peer did not break the connection");
  } catch (const ConnectionEnded& error) {
    outcome.failed_status = error.what();
    outcome.ending = endpoint.wait_ended(options.timeout);
    if (!outcome.ending.ended) report.add_failure("the connection ended without an event");
    if (!options.expect_end)
      report.add_failure("connection lost after the start of step " +
                         std::to_string(outcome.steps) + ": " + error.what());
  } catch (const std::exception& error) {
    report.add_failure(error.what());
  }
  if (meeting != nullptr) meeting->arrive();
  report.add(outcome, endpoint.negotiated());
}

/// Lets so many be connecting at a time as the options say.
std::unique_ptr<Endpoint> dial_in_turn(const Options& options) {
  static std::counting_semaphore turns(static_cast<std::ptrdiff_t>(options.dials));
  turns.acquire();
  const std::unique_ptr<void, void (*)(void*)> release(&turns, [](void*) { turns.release(); });
  return dial(options);
}

void run_one_client(const Options& options, Meeting* meeting, Report& report) {
  try {
    const auto endpoint = dial_in_turn(options);
    if (options.expect_reject) throw Failure("the server accepted");
    converse_and_report(*endpoint, options, meeting, report);
    return;
  } catch (const Rejected& rejected) {
    if (!options.expect_reject) report.add_failure("rejected");
    if (first_difference(
            std::span(rejected.private_data)
                .first(std::min<size_t>(rejected.private_data.size(), options.private_data)),
            2)) {
      report.add_failure("the reject's private data are not the peer's");
    }
  } catch (const std::exception& error) {
    report.add_failure(error.what());
  }
  if (meeting != nullptr) meeting->arrive();
}

void run_clients(const Options& options, Report& report) {
  if (!options.parallel) {
    for (uint32_t i = 0; i < options.connections; ++i) run_one_client(options, nullptr, report);
    return;
  }
  Meeting meeting(options.connections);
  std::vector<Options> each(options.connections, options);
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < each.size(); ++i) {
    each[i].port = options.ports[i % options.ports.size()];
    threads.emplace_back([&, i] { run_one_client(each[i], &meeting, report); });
  }
}

void run_server(const Options& options, Report& report) {
  const auto acceptor = listen(options);
  std::cerr << "listening" << std::endl;
  Meeting meeting(options.connections);
  std::vector<std::jthread> threads;
  for (uint32_t i = 0; i < options.connections; ++i) {
    auto endpoint = acceptor->accept(std::chrono::seconds(options.limit));
    if (!endpoint) return report.add_failure("no client came");
    if (!options.parallel) {
      converse_and_report(*endpoint, options, nullptr, report);
      continue;
    }
    threads.emplace_back([&options, &meeting, &report, held = std::move(endpoint)] {
      converse_and_report(*held, options, &meeting, report);
    });
  }
}

[[noreturn]] void give_up(int) {
  constexpr std::string_view kText = "{\"ok\": false, \"failure\": \"the time limit passed\"}\n";
  (void)!::write(STDOUT_FILENO, kText.data(), kText.size());
  ::_exit(124);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  int status = 0;
  try {
    if (!parse_options(argc, argv, options, status)) return status;
    std::signal(SIGALRM, give_up);
    ::alarm(options.limit);
    Report report;
    options.server ? run_server(options, report) : run_clients(options, report);
    return report.print() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cout << "{\"ok\": false, \"failure\": " << quoted(error.what()) << "}" << std::endl;
    return 1;
  }
}
