// SPDX-License-Identifier: Apache-2.0
#include <diwarp/verbs.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

/// datagram_partner ud|rd [ADDRESS [SOURCES]]
///
/// A UD or RD queue pair at ADDRESS (127.0.0.1) that does what lines of standard input say, and
/// answers each with one line: the library's side of tests against a second implementation
/// (foreign_test.py), and of attacks (tests/network). It remembers SOURCES sources, a quarter of
/// them of one address.
namespace {

using namespace diwarp;

constexpr size_t kMemory = 1 << 20;

DatagramOptions datagram_options(uint32_t sources) {
  DatagramOptions options{.q_key = 0, .record_timeout = std::chrono::seconds(2)};
  if (sources == 0) return options;
  options.max_sources = sources;
  options.max_sources_per_address = options.max_unproven_sources = sources / 4;
  return options;
}

struct Partner {
  Partner(QpType wanted, const std::string& address, uint32_t sources)
      : type(wanted), datagram(datagram_options(sources)), device(Device::open(address)) {}

  QpType type;
  DatagramOptions datagram;
  Device device;
  ProtectionDomain pd{device};
  CompletionQueue cq{device, 64};
  QueuePair qp{pd, {.type = type, .send_cq = cq, .recv_cq = cq, .datagram = datagram}};
  std::vector<std::byte> memory = std::vector<std::byte>(kMemory);
  MemoryRegion region{pd, memory, Access::local_write | Access::remote_write | Access::remote_read,
                      0};
  std::optional<MemoryRegion> lent;  ///< a second region, of the same memory
};

Address peer(std::istringstream& words) {
  std::string address;
  words >> address;
  return Address::parse(address);
}

/// `offset length` of the partner's own memory.
Sge memory(Partner& partner, std::istringstream& words) {
  size_t offset = 0;
  size_t length = 0;
  words >> offset >> length;
  return partner.region.sge(offset, length);
}

RemoteMemory remote(std::istringstream& words) {
  RemoteMemory memory;
  words >> memory.stag >> memory.offset;
  return memory;
}

std::string outcome(std::error_code error) { return error ? error.message() : "ok"; }

/// As one word.
std::string joined(std::string_view words) {
  std::string word(words);
  std::replace(word.begin(), word.end(), ' ', '-');
  return word;
}

std::string describe(const WorkCompletion& wc) {
  std::ostringstream out;
  out << to_string(wc.opcode) << ' ' << joined(to_string(wc.status)) << ' ' << wc.byte_count << ' '
      << wc.solicited << ' ' << (wc.has_immediate ? std::to_string(wc.immediate) : "none") << ' '
      << wc.tagged_offset << ' ' << wc.valid_bytes;
  for (const auto [offset, length] : wc.validity.ranges()) out << ' ' << offset << '+' << length;
  return out.str();
}

std::string wait(Partner& partner, std::istringstream& words) {
  int milliseconds = 0;
  words >> milliseconds;
  const auto completion = partner.cq.wait(std::chrono::milliseconds(milliseconds));
  return completion ? describe(*completion) : "nothing";
}

/// The memory was touched before what a peer does that hears of it. The two programs say so to each
/// other, which ThreadSanitizer cannot see: a call that excludes the RNIC's thread, it can.
void publish_accesses(Partner& partner) { partner.qp.query(); }

std::string contents(Partner& partner, std::istringstream& words) {
  const Sge sge = memory(partner, words);
  const auto* bytes = static_cast<const unsigned char*>(sge.address);
  std::string digits;
  for (size_t i = 0; i < sge.length; ++i) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", bytes[i]);
    digits += pair;
  }
  publish_accesses(partner);
  return digits;
}

/// Byte i of what is filled is seed + i, modulo 251.
std::string fill(Partner& partner, std::istringstream& words) {
  const Sge sge = memory(partner, words);
  unsigned seed = 0;
  words >> seed;
  auto* bytes = static_cast<unsigned char*>(sge.address);
  for (size_t i = 0; i < sge.length; ++i) bytes[i] = static_cast<unsigned char>((seed + i) % 251);
  publish_accesses(partner);
  return "ok";
}

/// Registers the second region, and tells its STag.
std::string lend(Partner& partner, std::istringstream&) {
  partner.lent.emplace(partner.pd, partner.memory, Access::remote_read, 0);
  return std::to_string(partner.lent->rkey());
}

std::string withdraw(Partner& partner, std::istringstream&) {
  partner.lent.reset();
  return "ok";
}

std::string receive(Partner& partner, std::istringstream& words) {
  const Sge sge = memory(partner, words);
  return outcome(partner.qp.post_recv({.sges = {&sge, 1}}));
}

std::string send(Partner& partner, std::istringstream& words) {
  SendWorkRequest request{.destination = peer(words)};
  const Sge sge = memory(partner, words);
  request.sges = {&sge, 1};
  uint64_t immediate = 0;
  if (words >> immediate) request.immediate = immediate;
  return outcome(partner.qp.post_send(request));
}

std::string write_record(Partner& partner, std::istringstream& words) {
  WriteRecordWorkRequest request{.destination = peer(words)};
  request.remote = remote(words);
  const Sge sge = memory(partner, words);
  request.sges = SgeList(std::span(&sge, 1));
  uint64_t immediate = 0;
  if (words >> immediate) {
    request.immediate = immediate;
    request.flags = request.flags | SendFlags::solicited;
  }
  return outcome(partner.qp.post_write_record(request));
}

std::string read(Partner& partner, std::istringstream& words) {
  ReadWorkRequest request{.destination = peer(words)};
  request.remote = remote(words);
  const Sge sge = memory(partner, words);
  request.sges = SgeList(std::span(&sge, 1));
  int milliseconds = 0;
  words >> milliseconds >> request.limits.retries;
  request.limits.timeout = std::chrono::milliseconds(milliseconds);
  return outcome(partner.qp.post_read(request));
}

std::string error(Partner& partner, std::istringstream&) {
  const auto error = partner.qp.poll_error();
  if (!error) return "nothing";
  std::ostringstream out;
  out << error->reported << ' ' << +error->code.layer << ' ' << +error->code.type << ' '
      << +error->code.code << ' ' << +error->opcode << ' ' << error->msn;
  return out.str();
}

std::string counter(Partner& partner, std::istringstream& words) {
  std::string name;
  words >> name;
  return std::to_string(partner.device.counter(name));
}

const std::map<std::string, std::function<std::string(Partner&, std::istringstream&)>> kCommands{
    {"wait", wait},       {"contents", contents}, {"fill", fill},
    {"receive", receive}, {"send", send},         {"write_record", write_record},
    {"read", read},       {"error", error},       {"counter", counter},
    {"lend", lend},       {"withdraw", withdraw}};

int run(Partner& partner) {
  std::cout << partner.qp.address().to_string() << ' ' << partner.region.rkey() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    const auto found = kCommands.find(command);
    std::cout << (found == kCommands.end() ? "no such command" : found->second(partner, words))
              << std::endl;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const auto argument = [&](int i, const char* otherwise) {
    return std::string(count > i ? arguments[i] : otherwise);
  };
  try {
    Partner partner(argument(1, "ud") == "rd" ? QpType::rd : QpType::ud, argument(2, "127.0.0.1"),
                    static_cast<uint32_t>(std::stoul(argument(3, "0"))));
    return run(partner);
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
  }
}
