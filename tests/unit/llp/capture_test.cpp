// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "diwarp/error.h"
#include "llp/capture/capture.h"
#include "llp/capture/packet.h"
#include "llp/capture/pcapng.h"
#include "llp/memory/memory_network.h"
#include "support/catch.h"
#include "support/child.h"

/// Packets that are captured, without tshark, which reads such files in tests/system.
namespace diwarp::llp {
namespace {

/// A folder of the test's own, and a file in it that is not there yet.
class Place {
 public:
  Place() : folder_(make()) {}
  ~Place() { std::filesystem::remove_all(folder_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  std::string path(const char* name = "capture") const { return folder_ + "/" + name; }

 private:
  static std::string make() {
    std::string folder = std::filesystem::temp_directory_path().string() + "/diwarp-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    return folder;
  }
  const std::string folder_;
};

std::vector<char> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

uint32_t word_at(const std::vector<char>& bytes, size_t at) {
  uint32_t word = 0;
  REQUIRE(at + sizeof word <= bytes.size());
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

/// The types of a file's blocks, which must fill it to its end.
std::vector<uint32_t> block_types(const std::string& path) {
  const std::vector<char> bytes = contents(path);
  std::vector<uint32_t> types;
  size_t at = 0;
  while (at < bytes.size()) {
    const uint32_t length = word_at(bytes, at + 4);
    REQUIRE(length >= 12);
    REQUIRE(length % 4 == 0);
    CHECK(word_at(bytes, at + length - 4) == length);
    types.push_back(word_at(bytes, at));
    at += length;
  }
  CHECK(at == bytes.size());
  return types;
}

constexpr uint32_t kSection = 0x0A0D0D0A, kInterface = 1, kStatistics = 5, kPacket = 6;
constexpr uint64_t kAmple = 1 << 20;
const WallTime kThen{std::chrono::seconds(1'700'000'000)};

bool add(CaptureFile& file, uint32_t interface, size_t payload = 100) {
  const std::vector<std::byte> bytes(payload);
  const ConstBytes piece = bytes;
  return file.add(interface, kThen, Direction::outbound,
                  {.from = Address::parse("192.0.2.1:7"),
                   .to = Address::parse("192.0.2.2:9"),
                   .pieces = std::span(&piece, 1)});
}

std::vector<std::byte> composed(const Packet& packet) {
  std::vector<std::byte> bytes(packet.size(), std::byte{0xEE});
  packet.compose(bytes);
  return bytes;
}

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

/// Whether this process has the file open.
bool has_open(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == path) return true;
  }
  return false;
}

std::error_code refusal(const std::string& path) {
  try {
    CaptureFile::open(path, kAmple);
  } catch (const Error& error) {
    return error.code();
  }
  return {};
}

}  // namespace

// The checksums of the next three were computed by another program.
TEST_CASE("A captured datagram has headers of IPv4 and UDP") {
  const auto text = bytes_of({'a', 'b', 'c'});
  const std::array<ConstBytes, 2> pieces = {ConstBytes(text).first(1), ConstBytes(text).subspan(1)};
  const Packet packet = {.from = Address::parse("192.0.2.1:18560"),
                         .to = Address::parse("198.51.100.7:53"),
                         .pieces = pieces};
  CHECK(composed(packet) ==
        bytes_of({0x45, 0,  0,   31, 0,    0,    0x40, 0,  64, 17, 0x4E, 0x92, 192, 0,   2,  1,
                  198,  51, 100, 7,  0x48, 0x80, 0,    53, 0,  11, 0x06, 0x84, 'a', 'b', 'c'}));
}

TEST_CASE("A captured segment has headers of IPv6 and TCP") {
  const auto text = bytes_of({'a', 'b', 'c'});
  const ConstBytes piece = text;
  const TcpFields fields = {
      .sequence = 0x01020304, .acknowledgement = 0x05060708, .flags = kTcpPsh | kTcpAck};
  const Packet packet = {.from = Address::parse("[2001:db8::1]:18560"),
                         .to = Address::parse("[2001:db8::2]:53"),
                         .tcp = &fields,
                         .pieces = std::span(&piece, 1)};
  const auto bytes = composed(packet);
  REQUIRE(bytes.size() == 63);
  CHECK(std::vector(bytes.begin(), bytes.begin() + 8) == bytes_of({0x60, 0, 0, 0, 0, 23, 6, 64}));
  CHECK(std::vector(bytes.begin() + 40, bytes.end()) ==
        bytes_of({0x48, 0x80, 0,    53,   1,    2,    3, 4, 5,   6,   7,  8,
                  0x50, 0x18, 0xFF, 0xFF, 0x37, 0x29, 0, 0, 'a', 'b', 'c'}));
}

TEST_CASE("The largest datagram fits into a captured packet of either family") {
  const std::vector<std::byte> payload(kMaxDatagram);
  const ConstBytes piece = payload;
  for (const char* host : {"192.0.2.1", "2001:db8::1"}) {
    const Packet packet = {
        .from = Address::parse(host), .to = Address::parse(host), .pieces = std::span(&piece, 1)};
    CHECK(packet.payload() <= kMostUdpPayload);
    CHECK(packet.size() <= 65535 + 40);
    CHECK(composed(packet).back() == std::byte{0});
  }
}

TEST_CASE("A capture file has a section, interfaces, packets and statistics, in whole blocks") {
  const Place place;
  Counters counters;
  {
    const auto file = CaptureFile::open(place.path(), kAmple);
    const uint32_t one = file->add_interface("one", counters);
    CHECK(one == 0);
    CHECK(file->add_interface(std::string(1000, 'x'), counters) == 1);
    for (size_t payload = 0; payload < 5; ++payload) CHECK(add(*file, one, payload));
    file->end_interface(one);
  }
  CHECK(block_types(place.path()) == std::vector<uint32_t>{kSection, kInterface, kInterface,
                                                           kPacket, kPacket, kPacket, kPacket,
                                                           kPacket, kStatistics});
}

TEST_CASE("What is no capture is not overwritten") {
  const Place place;
  std::ofstream(place.path()) << "a letter";
  CHECK(refusal(place.path()) == Errc::invalid_argument);
  CHECK(contents(place.path()).size() == 8);
}

TEST_CASE("A capture's limit leaves room for packets, and is a file's length") {
  const Place place;
  for (const uint64_t limit : {uint64_t{0}, CaptureFile::kLeastLimit - 1, UINT64_MAX})
    CHECK_THROWS_AS(CaptureFile::open(place.path(), limit), Error);
  CHECK_FALSE(std::filesystem::exists(place.path()));
  CaptureFile::open(place.path(), CaptureFile::kLeastLimit);
  CHECK(std::filesystem::exists(place.path()));
}

TEST_CASE("A capture file is the user's alone, whoever could read it before") {
  const Place place;
  CaptureFile::open(place.path(), kAmple);
  std::ofstream(place.path(), std::ios::app) << "left over";
  REQUIRE(::chmod(place.path().c_str(), 0666) == 0);
  CaptureFile::open(place.path(), kAmple);
  struct stat found {};
  REQUIRE(::stat(place.path().c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0600);
}

TEST_CASE("A capture file of an earlier process is overwritten") {
  const Place place;
  std::ofstream(place.path()) << "\x0a\x0d\x0d\x0a and more";
  CaptureFile::open(place.path(), kAmple);
  CHECK(block_types(place.path()) == std::vector<uint32_t>{kSection});
}

TEST_CASE("A capture file gets no longer than its limit, and what is left out is counted") {
  const Place place;
  Counters counters;
  constexpr uint64_t kLimit = 5000;
  {
    const auto file = CaptureFile::open(place.path(), kLimit);
    const uint32_t interface = file->add_interface("lo", counters);
    size_t taken = 0;
    while (add(*file, interface)) ++taken;
    CHECK(taken > 5);
    CHECK_FALSE(add(*file, interface));
    file->end_interface(interface);
  }
  const auto types = block_types(place.path());
  CHECK(types.back() == kStatistics);
  const auto bytes = contents(place.path());
  CHECK(bytes.size() <= kLimit);
  // The last option but the end of options: two packets were dropped.
  CHECK(word_at(bytes, bytes.size() - 16) == 2);
  CHECK(counters.get(Counter::pcap_dropped) == 2);
}

TEST_CASE("What one process captures to a file goes on, with a section of its own each time") {
  const Place place;
  Counters counters;
  for (int times = 0; times < 2; ++times) {
    const auto file = CaptureFile::open(place.path(), kAmple);
    CHECK(add(*file, file->add_interface("lo", counters)));
  }
  CHECK(block_types(place.path()) ==
        std::vector<uint32_t>{kSection, kInterface, kPacket, kSection, kInterface, kPacket});
}

TEST_CASE("Devices of one process share a capture file") {
  const Place place;
  const auto one = CaptureFile::open(place.path(), kAmple);
  CHECK(CaptureFile::open(place.path(), kAmple) == one);
}

TEST_CASE("A forked child has capture files of its own") {
  const Place place;
  const auto parents = CaptureFile::open(place.path("parent"), kAmple);
  const int result = test::in_child([&] {
    if (refusal(place.path("parent")) != std::errc::device_or_resource_busy) return 1;
    if (has_open(place.path("parent"))) return 3;
    Counters counters;
    const auto own = CaptureFile::open(place.path("%p"), kAmple);
    return own->add_interface("lo", counters) == 0 ? 0 : 2;
  });
  CHECK(result == 0);
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(place.path()).parent_path()))
    files += entry.is_regular_file() ? 1 : 0;
  CHECK(files == 2);
}

TEST_CASE("A capture file that another process writes to is refused") {
  const Place place;
  const int other = ::open(place.path().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  REQUIRE(::flock(other, LOCK_EX) == 0);
  CHECK(refusal(place.path()) == std::errc::device_or_resource_busy);
  ::close(other);
  CHECK_FALSE(refusal(place.path()));
}

TEST_CASE("Packets are captured to a regular file in a folder that is there, or not at all") {
  const Place place;
  REQUIRE(::mkfifo(place.path("fifo").c_str(), 0600) == 0);
  CHECK(refusal(place.path("fifo")) == Errc::invalid_argument);
  CHECK(refusal("/dev/null") == Errc::invalid_argument);
  CHECK(refusal(place.path("missing/file")) == std::errc::no_such_file_or_directory);
  CHECK(refusal(std::filesystem::path(place.path()).parent_path()) == std::errc::is_a_directory);
}

TEST_CASE("A capture file that cannot be written any more ends with a whole block") {
  const Place place;
  const int result = test::in_child([&] {
    Counters counters;
    auto file = CaptureFile::open(place.path(), kAmple);
    const uint32_t interface = file->add_interface("lo", counters);
    const rlimit limit = {.rlim_cur = 1000, .rlim_max = 1000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    uint64_t refused = 0;
    for (int i = 0; i < 1000; ++i) refused += add(*file, interface) ? 0 : 1;
    file.reset();  // writes what waits
    // Those that were taken and never written are counted as dropped, too.
    return counters.get(Counter::pcap_dropped) > refused ? 0 : 2;
  });
  CHECK(result == 0);
  CHECK(contents(place.path()).size() <= 1000);
  for (const uint32_t type : block_types(place.path()))
    CHECK((type == kSection || type == kInterface || type == kPacket));
}

TEST_CASE("A capture file on a full disk has the packets that fit, and counts those that do not") {
  const Place place;
  constexpr uint64_t kPackets = 1000;
  constexpr rlim_t kRoom = 10'000;
  const int result = test::in_child([&] {
    Counters counters;
    auto file = CaptureFile::open(place.path(), kAmple);
    const uint32_t interface = file->add_interface("lo", counters);
    const rlimit limit = {.rlim_cur = kRoom, .rlim_max = kRoom};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    for (uint64_t i = 0; i < kPackets; ++i) static_cast<void>(add(*file, interface));
    file.reset();  // writes what waits
    const auto types = block_types(place.path());
    const auto written = static_cast<uint64_t>(std::ranges::count(types, kPacket));
    return written + counters.get(Counter::pcap_dropped) == kPackets ? 0 : 2;
  });
  CHECK(result == 0);
  const size_t length = contents(place.path()).size();
  CHECK(length <= kRoom);
  CHECK(length > kRoom - 200);  // there is no room for one more
}

TEST_CASE("A captured link passes datagrams on, and each is in the file once an end") {
  const Place place;
  Counters counters;
  {
    const auto network = MemoryNetwork::create();
    Capture capture(CaptureFile::open(place.path(), kAmple), "memory", counters);
    const auto a = capture_link(network->open(Address::parse("192.0.2.1:1")), capture);
    const auto b = capture_link(network->open(Address::parse("192.0.2.2:2")), capture);
    const auto text = bytes_of({'x', 'y'});
    const ConstBytes piece = text;
    const OutgoingDatagram datagram = {.to = b->local_address(), .pieces = std::span(&piece, 1)};
    CHECK(a->send(std::span(&datagram, 1)).sent == 1);
    ReceiveBatch batch(4, 2048, 16);
    REQUIRE(b->receive(batch) == 1);
    CHECK(std::ranges::equal(batch.datagrams()[0].bytes, text));
    CHECK(b->receive(batch) == 0);
  }
  CHECK(counters.get(Counter::pcap_packets) == 2);
  CHECK(counters.get(Counter::pcap_dropped) == 0);
  CHECK(block_types(place.path()) ==
        std::vector<uint32_t>{kSection, kInterface, kPacket, kPacket, kStatistics});
}

}  // namespace diwarp::llp
