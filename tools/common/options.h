// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <diwarp/device.h>
#include <diwarp/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/device_choice.h"
#include "common/group.h"
#include "common/operation.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace diwarp::tools {

/// The means that move the bytes of a device; throws Failure with a message on anything else.
IoBackend parse_io(const std::string& text);
inline constexpr const char* kIoHelp = "What moves bytes (auto: what measured best)";
/// The names that parse_io() takes.
std::string io_names(const char* separator = "|");

/// "on" or "off"; throws Failure, which names the option, on anything else.
bool parse_switch(const char* option, const std::string& text);

/// At most so many clients of a server, and streams of a client.
inline constexpr uint32_t kMaxClients = 64;
inline constexpr uint32_t kMaxStreams = 64;

/// Where a server listens if nothing else is said.
inline constexpr uint16_t kDefaultPort = 18560;

enum class Role : uint8_t { server, client, loopback };

/// Which end of a run this process plays, and where.
struct Ends {
  Role role = Role::loopback;
  /// Where to listen (server, loopback) or to connect to (client).
  Address address;
  /// The other servers of a run with a group.
  std::vector<Address> more_servers = {};
  /// For anything that the peer should do. A server waits for its first peer without limit unless
  /// the user gave one.
  Duration timeout = std::chrono::seconds(10);
  std::optional<Duration> accept_timeout;
  DeviceChoice device;
  int cpu = -1;  ///< this end's processor, the next one for the other end of a loopback
  std::string json_file;
  std::string csv_file;
  size_t udp_buffer = DeviceOptions{}.udp_receive_buffer;
  IoBackend io = IoBackend::automatic;
  size_t zerocopy_from = 0;
  bool segmentation = true;  ///< the kernel may split what leaves (GSO)
  bool coalescing = true;    ///< the kernel may join what comes (GRO)
  uint32_t clients = 1;      ///< that the server serves at the same time

  std::vector<Address> servers() const;
  /// Whether the rows are shown at the server: in a loopback this process is one end of it.
  bool shown_at_server() const {
    return role == Role::server || (role == Role::loopback && clients > 1);
  }
};

/// The measurement of diwarp-pingpong and diwarp-bandwidth; the client's choice.
struct Measure {
  QpType transport = QpType::ud;
  Operation operation = Operation::send;
  std::vector<uint64_t> sizes;
  std::optional<uint64_t> iterations;  ///< none: chosen by size
  std::optional<uint64_t> warmup;
  std::optional<uint32_t> window;  ///< none: chosen by size
  uint64_t rate = 0;               ///< bytes a second; 0: no limit
  double max_loss = 1;             ///< percent
  bool verify = false;
  std::string segment = "mtu";  ///< as parse_segment() reads it
  RecordCompletion completion = RecordCompletion::complete;
  CongestionControl congestion = CongestionControl::bbr;  ///< RD
  std::string transmissions;  ///< RD: the file for those of this end; empty: none
  bool partial = false;       ///< what comes in part answers a ping, too
  uint32_t streams = 1;
  bool bidirectional = false;
  std::optional<Group> group;  ///< messages go to all servers
};

/// The options of the measuring tools. Declared before and read after CLI parses, which fills the
/// texts between.
class MeasureOptions {
 public:
  MeasureOptions(CLI::App& app, std::string default_size, std::string default_max_loss);

  /// --window and others, which only the bandwidth has.
  void add_flow_options(CLI::App& app);
  /// --partial, which only the ping-pong has.
  void add_ping_options(CLI::App& app);

  /// Throw Failure with a message if the options contradict each other or make no sense.
  Ends ends() const;
  Measure measure() const;

 private:
  void add_end_options(CLI::App& app);
  void add_measure_options(CLI::App& app);
  Role role() const;
  Address address(Role role) const;
  Address server_address() const;
  Address loopback_address() const;
  Address client_address(const std::string& text) const;
  void refuse_client_options() const;
  bool has_group() const;
  uint32_t clients(Role role) const;
  RecordCompletion completion(Operation operation) const;
  void check_flows() const;
  void read_reliable(Measure& measure) const;
  void check_partial(QpType transport, Operation operation) const;
  void check_group(QpType transport, Operation operation) const;
  Group group() const;
  std::vector<Address> receivers() const;
  std::vector<uint64_t> sizes(Operation operation) const;

  CLI::Option* server_ = nullptr;
  CLI::Option* timeout_option_ = nullptr;
  std::vector<CLI::Option*> client_options_;
  std::string server_text_;
  std::vector<std::string> connect_texts_;
  bool loopback_ = false;
  bool ipv6_ = false;
  DeviceArguments device_;
  std::string address_text_;
  double timeout_ = 10;
  int cpu_ = -1;
  std::string json_file_;
  std::string csv_file_;
  std::string udp_buffer_;
  std::string io_ = "auto";
  std::string zerocopy_;

  std::string transport_ = "ud";
  std::string operation_ = "send";
  CLI::Option* size_option_ = nullptr;
  std::vector<std::string> sizes_;
  std::optional<uint64_t> iterations_;
  std::optional<uint64_t> warmup_;
  std::optional<uint32_t> window_;
  std::string rate_;
  std::string max_loss_;
  bool verify_ = false;
  std::optional<uint32_t> receivers_;
  std::string group_text_;
  bool flows_ = false;  // not a ping-pong
  CLI::Option* segment_option_ = nullptr;
  std::string segment_ = "mtu";
  std::string gso_ = "on";
  std::string gro_ = "on";
  CLI::Option* congestion_option_ = nullptr;
  std::string congestion_ = "bbr";
  std::string transmissions_;
  CLI::Option* completion_option_ = nullptr;
  std::string completion_ = "complete";
  std::optional<uint32_t> clients_;
  uint32_t streams_ = 1;
  bool bidirectional_ = false;
  bool partial_ = false;
};

}  // namespace diwarp::tools
