// SPDX-License-Identifier: Apache-2.0
#include "common/options.h"

#include <CLI/CLI.hpp>

#include "common/failure.h"
#include "common/json_output.h"
#include "common/numbers.h"
#include "common/socket.h"

namespace diwarp::tools {
namespace {

/// A list without the brackets that CLI11 puts around defaults is easier to read in --help.
constexpr const char* kSizeHelp =
    "Message sizes in bytes: 64, 4K, 1M, a list (64,4K) or powers of two (1:1M)";

/// Errors of Address::parse, without the library's general message behind it.
Address parse_address(const std::string& text, uint16_t default_port) {
  try {
    return Address::parse(text, default_port);
  } catch (const std::system_error&) {
    throw Failure("\"" + text +
                  "\" is not an address: write 1.2.3.4:port or [::1]:port (names are not "
                  "resolved).");
  }
}

void require(const char* option, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return;
  throw Failure(std::string(option) + " needs a number from " + std::to_string(low) + " to " +
                std::to_string(high) + ".");
}

constexpr uint64_t kMaxIterations = 1'000'000'000;
constexpr uint32_t kMaxWindow = 4096;
constexpr uint32_t kMaxReceivers = 64;
constexpr const char* kGroup4 = "239.192.18.56";  // organization-local (RFC 2365 section 6.2)
constexpr const char* kGroup6 = "ff15::1856";     // site-local, transient (RFC 4291 section 2.7)
constexpr double kMaxTimeout = 3600;

}  // namespace

IoBackend parse_io(const std::string& text) {
  if (const auto io = parse_io_backend(text)) return *io;
  throw Failure("--io is one of " + io_names(", ") + ", not " + text + ".");
}

std::string io_names(const char* separator) {
  std::string names;
  for (const IoBackendName& one : kIoBackends)
    names.append(names.empty() ? "" : separator).append(one.name);
  return names;
}

bool parse_switch(const char* option, const std::string& text) {
  if (text == "on") return true;
  if (text == "off") return false;
  throw Failure(std::string(option) + " is on or off, not " + text + ".");
}

MeasureOptions::MeasureOptions(CLI::App& app, std::string default_size,
                               std::string default_max_loss)
    : sizes_{std::move(default_size)}, max_loss_(std::move(default_max_loss)) {
  add_end_options(app);
  add_measure_options(app);
}

void MeasureOptions::add_end_options(CLI::App& app) {
  server_ = app.add_option("--server", server_text_,
                           "Wait for the other end at ADDR:PORT (default 0.0.0.0:" +
                               std::to_string(kDefaultPort) + "; port 0: a free one)")
                ->expected(0, 1)
                ->type_name("ADDR:PORT");
  app.add_option("--connect", connect_texts_,
                 "Run against the server at ADDR:PORT, or with a group against several (A,B,C)")
      ->delimiter(',')
      ->type_name("ADDR:PORT");
  app.add_flag("--loopback", loopback_, "Start both ends on this host");
  app.add_flag("--ipv6", ipv6_, "Loopback and server: use ::1 and [::]");
  app.add_option("--address", address_text_, "Loopback: use this address of this host")
      ->type_name("ADDR");
  device_.add_to(app, "on the address that leads to the other end");
  timeout_option_ =
      app.add_option("--timeout", timeout_, "Seconds to wait for anything the peer should do")
          ->capture_default_str();
  app.add_option("--cpu", cpu_, "Bind this end to processor N (loopback: the other end to N+1)")
      ->type_name("N");
  app.add_option(
         "--udp-buffer", udp_buffer_,
         "Receive buffer of this end's sockets, as in 200K (default 8M; the system may cut it)")
      ->type_name("N");
  app.add_option("--io", io_, kIoHelp)->type_name(io_names())->capture_default_str();
  app.add_option("--gso", gso_, "UD, RD: let the kernel split what this end sends (UDP_SEGMENT)")
      ->type_name("on|off")
      ->capture_default_str();
  app.add_option("--gro", gro_, "UD, RD: let the kernel join what comes to this end (UDP_GRO)")
      ->type_name("on|off")
      ->capture_default_str();
  app.add_option(
         "--zerocopy", zerocopy_,
         "RC: calls that send at least N bytes of payload leave them uncopied where this end "
         "has them (MSG_ZEROCOPY; default: never; not with io_uring)")
      ->type_name("N");
  add_json_option(app, json_file_);
  app.add_option("--csv", csv_file_, "Write the rows to FILE as CSV (-: standard output)")
      ->type_name("FILE");
}

void MeasureOptions::add_measure_options(CLI::App& app) {
  app.footer(operations_help());
  size_option_ = app.add_option("--size", sizes_, kSizeHelp)->type_name("N")->capture_default_str();
  client_options_ = {
      size_option_,
      app.add_option("--transport", transport_, "The transport")
          ->type_name("ud|rc|rd")
          ->capture_default_str(),
      app.add_option("--op", operation_, "The operation")
          ->type_name(operation_names("|"))
          ->capture_default_str(),
      app.add_option("--iterations", iterations_, "Messages per size (default: by size)")
          ->type_name("N"),
      app.add_option("--warmup", warmup_, "Messages before them, not counted (default: a tenth)")
          ->type_name("N"),
      app.add_option("--max-loss", max_loss_,
                     "UD: percent of the messages that may get lost; more is a failure")
          ->type_name("PERCENT")
          ->capture_default_str(),
      app.add_flag("--verify", verify_, "Check every byte on arrival"),
      app.add_option("--rate", rate_, "UD, RD: send at most this many bytes a second: 500K, 1.5G")
          ->type_name("RATE"),
      segment_option_ =
          app.add_option("--segment", segment_,
                         "UD, RD: how long datagrams are: what the path MTU carries (mtu), up to "
                         "64 KiB (jumbo) or N bytes, headers and CRC included; IP fragments those "
                         "that are longer than the path MTU")
              ->type_name("mtu|jumbo|N")
              ->capture_default_str(),
      completion_option_ =
          app.add_option("--completion", completion_,
                         "Write-Records: when their target is told: when all of one came, when "
                         "its last segment came, or of each segment (of flows only)")
              ->type_name(completion_names("|"))
              ->capture_default_str(),
      congestion_option_ =
          app.add_option("--congestion", congestion_,
                         "RD: how an end finds the rate at which it sends: by the rate of delivery "
                         "that it measures (bbr), or by what is lost, as TCP does (cubic)")
              ->type_name("bbr|cubic")
              ->capture_default_str(),
      app.add_option("--transmissions", transmissions_,
                     "RD: write each transmission of this end's first queue pair to FILE, with its "
                     "time, number and cause; diwarp-lab --transmissions FILE plots it")
          ->type_name("FILE"),
      app.add_option("--receivers", receivers_,
                     "UD: send to a group of so many servers, which all have the same port; with "
                     "--loopback they are at 127.0.0.2 and so on")
          ->type_name("N"),
      app.add_option("--group", group_text_,
                     std::string("The group's address, multicast or broadcast (default ") +
                         kGroup4 + " or " + kGroup6 + ") and its members' port (default " +
                         std::to_string(kGroupPort) + ", with --loopback a free one)")
          ->type_name("ADDR[:PORT]"),
  };
}

void MeasureOptions::add_flow_options(CLI::App& app) {
  flows_ = true;
  client_options_.push_back(
      app.add_option(
             "--window", window_,
             "Messages on the way at once (default: over UD what the receive buffer holds, at "
             "most 512 KiB, of Reads 1 MiB, else 4 MiB; but 2 to 128, and 1 over UD if it holds "
             "none; read and atomic at most 16, the ORD)")
          ->type_name("N"));
  client_options_.push_back(
      app.add_option("--streams", streams_,
                     "Queue pairs over which this end sends at the same time; window and loss are "
                     "of each, messages and rate of all together")
          ->type_name("N")
          ->capture_default_str());
  client_options_.push_back(app.add_flag("--bidirectional", bidirectional_,
                                         "The server sends as well, over other queue pairs; each "
                                         "way has a row"));
  app.add_option("--clients", clients_,
                 "Server, loopback: serve so many clients at the same time; each has rows, and "
                 "the server")
      ->type_name("N");
}

void MeasureOptions::add_ping_options(CLI::App& app) {
  client_options_.push_back(app.add_flag("--partial", partial_,
                                         "UD: a Write-Record or Read of which a part came counts, "
                                         "with the time until its end was told"));
}

Role MeasureOptions::role() const {
  const bool server = server_->count() > 0;
  const bool client = !connect_texts_.empty();
  if (int{server} + int{client} + int{loopback_} != 1) {
    throw Failure("Say which end this is: one of --server, --connect ADDR:PORT and --loopback.");
  }
  if (server) return Role::server;
  return client ? Role::client : Role::loopback;
}

Address MeasureOptions::server_address() const {
  if (!server_text_.empty()) return parse_address(server_text_, kDefaultPort);
  return Address::any(ipv6_ ? AddressFamily::ipv6 : AddressFamily::ipv4, kDefaultPort);
}

Address MeasureOptions::loopback_address() const {
  if (!address_text_.empty()) return parse_address(address_text_, 0).with_port(0);
  return Address::loopback(ipv6_ ? AddressFamily::ipv6 : AddressFamily::ipv4);
}

Address MeasureOptions::address(Role role) const {
  if (role == Role::server) return server_address();
  if (role == Role::loopback) return loopback_address();
  return client_address(connect_texts_.front());
}

Address MeasureOptions::client_address(const std::string& text) const {
  const Address peer = parse_address(text, kDefaultPort);
  if (peer.is_any() || peer.port() == 0) {
    throw Failure("--connect needs the address and port of a server, not " + text + ".");
  }
  return peer;
}

std::vector<Address> Ends::servers() const {
  std::vector<Address> all = more_servers;
  all.insert(all.begin(), address);
  return all;
}

bool MeasureOptions::has_group() const {
  return receivers_ || !group_text_.empty() || connect_texts_.size() > 1;
}

void MeasureOptions::check_group(QpType transport, Operation operation) const {
  if (transport != QpType::ud) {
    throw Failure("Groups are for --transport ud only: leave --receivers and --group out.");
  }
  const bool records = operation == Operation::write_record;
  if (operation != Operation::send && !(records && flows_)) {
    throw Failure("--op " + std::string(info_of(operation).name) +
                  " cannot go to a group: choose send" + (flows_ ? " or write-record." : "."));
  }
}

/// Where the receivers of a group are, from 127.0.0.2 on or as --connect has them.
std::vector<Address> MeasureOptions::receivers() const {
  require("--receivers", receivers_.value_or(1), 1, kMaxReceivers);
  std::vector<Address> all;
  for (const std::string& text : connect_texts_) all.push_back(client_address(text));
  if (!loopback_) {
    if (receivers_.value_or(all.size()) == all.size()) return all;
    throw Failure("--receivers says " + std::to_string(*receivers_) + " and --connect names " +
                  std::to_string(all.size()) + ": give the address of each receiver.");
  }
  if (!receivers_) throw Failure("Say how many receivers the group has: --receivers N.");
  if (ipv6_ || !address_text_.empty()) {
    throw Failure(
        "Each receiver of a group has an address of its own: with --loopback leave --ipv6 "
        "and --address out.");
  }
  for (uint32_t i = 0; i < *receivers_; ++i) {
    all.push_back(Address::parse("127.0.0." + std::to_string(i + 2)));
  }
  return all;
}

Group MeasureOptions::group() const {
  const Address member = receivers().front();
  const bool ipv4 = member.family() == AddressFamily::ipv4;
  const Address given = group_text_.empty() ? Address::parse(ipv4 ? kGroup4 : kGroup6)
                                            : parse_address(group_text_, 0);
  // A subnet's broadcast address shows only to hosts in it.
  const bool may_be_group = given.is_multicast() || (ipv4 && !given.is_any());
  if (given.family() != member.family() || !may_be_group) {
    throw Failure("--group needs a multicast or broadcast address of the servers' family, not " +
                  given.host() + ".");
  }
  if (given.port() != 0) return make_group(given);
  return make_group(given.with_port(loopback_ ? free_udp_port(member) : kGroupPort));
}

/// A server measures what its client asks for; an option that would be ignored is refused.
void MeasureOptions::refuse_client_options() const {
  for (const CLI::Option* option : client_options_) {
    if (option->count() > 0) {
      throw Failure(option->get_name() + " is the client's choice: give it with --connect.");
    }
  }
}

Ends MeasureOptions::ends() const {
  Ends ends;
  ends.role = role();
  if (ends.role == Role::server) refuse_client_options();
  ends.address = address(ends.role);
  if (ends.role != Role::server && has_group()) {
    ends.more_servers = receivers();
    ends.address = ends.more_servers.front();
    ends.more_servers.erase(ends.more_servers.begin());
  }
  if (!(timeout_ > 0) || timeout_ > kMaxTimeout) {
    throw Failure("--timeout needs seconds, more than 0 and at most 3600.");
  }
  ends.timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout_));
  if (timeout_option_->count() > 0) ends.accept_timeout = ends.timeout;
  ends.device = device_.choice();
  ends.cpu = cpu_;
  ends.json_file = json_file_;
  ends.csv_file = csv_file_;
  ends.io = parse_io(io_);
  if (!zerocopy_.empty()) ends.zerocopy_from = parse_sizes({zerocopy_}).front();
  if (!udp_buffer_.empty()) ends.udp_buffer = parse_sizes({udp_buffer_}).front();
  ends.segmentation = parse_switch("--gso", gso_);
  ends.coalescing = parse_switch("--gro", gro_);
  ends.clients = clients(ends.role);
  return ends;
}

uint32_t MeasureOptions::clients(Role role) const {
  require("--clients", clients_.value_or(1), 1, kMaxClients);
  if (clients_ && role == Role::client)
    throw Failure("--clients is the server's choice: give it with --server.");
  if (clients_.value_or(1) > 1 && has_group())
    throw Failure("A group's servers serve one client each: leave --clients out.");
  return clients_.value_or(1);
}

RecordCompletion MeasureOptions::completion(Operation operation) const {
  const RecordCompletion completion = parse_completion(completion_);
  if (completion_option_->count() > 0 && operation != Operation::write_record)
    throw Failure(
        "--completion is of Write-Records only: leave it out, or choose --op "
        "write-record.");
  if (completion == RecordCompletion::per_segment && !flows_)
    throw Failure(
        "A message that completes in segments is no answer to a ping: choose "
        "--completion complete or last-segment.");
  return completion;
}

/// Options of flows that contradict each other.
void MeasureOptions::check_flows() const {
  require("--streams", streams_, 1, kMaxStreams);
  if (iterations_ && *iterations_ < streams_)
    throw Failure("--iterations needs at least one message for each of the --streams.");
  if (has_group() && (streams_ > 1 || bidirectional_))
    throw Failure(
        "Messages go to a group over one queue pair, one way: leave --streams and "
        "--bidirectional out.");
}

void MeasureOptions::check_partial(QpType transport, Operation operation) const {
  if (!partial_) return;
  const bool comes_in_part = operation == Operation::write_record || operation == Operation::read;
  if (transport != QpType::ud || !comes_in_part)
    throw Failure(
        "Only Write-Records and Reads over UD come in part: leave --partial out, or choose "
        "--transport ud and --op write-record or read.");
  if (verify_) throw Failure("--verify checks whole messages: leave it or --partial out.");
}

std::vector<uint64_t> MeasureOptions::sizes(Operation operation) const {
  const uint64_t fixed_size = info_of(operation).fixed_size;
  if (fixed_size != 0 && size_option_->count() == 0) return {fixed_size};
  std::vector<uint64_t> sizes = parse_sizes(sizes_);
  for (uint64_t size : sizes) check_size(operation, size);
  return sizes;
}

void MeasureOptions::read_reliable(Measure& measure) const {
  measure.congestion = parse_congestion(congestion_);
  measure.transmissions = transmissions_;
  const bool chosen = congestion_option_->count() > 0 || !transmissions_.empty();
  if (chosen && measure.transport != QpType::rd)
    throw Failure("--congestion and --transmissions are of RD only: choose --transport rd.");
  // Each size and each client has a queue pair of its own, and would overwrite the file.
  if (!transmissions_.empty() && (measure.sizes.size() > 1 || clients_.value_or(1) > 1))
    throw Failure("--transmissions writes one connection's: choose one --size and one client.");
}

Measure MeasureOptions::measure() const {
  require("--iterations", iterations_.value_or(1), 1, kMaxIterations);
  require("--warmup", warmup_.value_or(0), 0, kMaxIterations);
  require("--window", window_.value_or(1), 1, kMaxWindow);
  Measure measure;
  measure.transport = parse_transport(transport_);
  measure.operation = parse_operation(operation_);
  check_transport(measure.operation, measure.transport);
  measure.sizes = sizes(measure.operation);
  measure.iterations = iterations_;
  measure.warmup = warmup_;
  measure.window = window_;
  measure.rate = rate_.empty() ? 0 : parse_rate(rate_);
  measure.max_loss = parse_percent(max_loss_);
  measure.verify = verify_;
  measure.segment = segment_;
  parse_segment(segment_);
  measure.completion = completion(measure.operation);
  read_reliable(measure);
  check_flows();
  check_partial(measure.transport, measure.operation);
  measure.partial = partial_;
  measure.streams = streams_;
  measure.bidirectional = bidirectional_;
  if (has_group()) {
    check_group(measure.transport, measure.operation);
    measure.group = group();
  }
  if (is_datagram(measure.transport) && !zerocopy_.empty()) {
    throw Failure("--zerocopy is of RC only: leave it out, or choose --transport rc.");
  }
  if (is_datagram(measure.transport)) return measure;
  if (measure.rate != 0) {
    throw Failure("--rate paces datagrams only: leave it out with --transport rc.");
  }
  if (segment_option_->count() > 0) {
    throw Failure("--segment is of datagrams only: leave it out with --transport rc.");
  }
  return measure;
}

}  // namespace diwarp::tools
