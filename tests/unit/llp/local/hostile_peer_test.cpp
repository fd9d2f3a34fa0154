// SPDX-License-Identifier: Apache-2.0
// A process of this host that says over the Unix socket, or writes into a ring, what it never
// should. Here it has the socket alone; the device that it disturbs is asked by turns.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "base/random.h"
#include "llp/local/local_link.h"
#include "llp/local/local_peers.h"
#include "llp/tcp/tcp_connector.h"
#include "llp/udp/udp_link.h"
#include "support/catch.h"
#include "support/own_loopback.h"
#include "unit/llp/datagrams.h"

namespace diwarp::llp {
namespace {

const Address kOwnAddress = Address::parse(test::own_loopback());
constexpr LocalSettings kSettings = {.after = 4, .ring = kLeastRing, .max_rings = 2};

/// Whether a device has the name.
bool is_taken(const std::string& name) {
  UniqueFd socket;
  return connect_locally(name, socket);
}

/// The device that is disturbed, with one link, and a socket of this user's whose address the peer
/// may name.
struct Scene {
  Scene() { link->set_key(link.get()); }
  ~Scene() {
    if (link) link->set_key(nullptr);
  }

  void step(int times = 4) {
    for (int i = 0; i < times; ++i) {
      peers->gather(true);
      while (peers->next_ready() != nullptr) {
      }
    }
  }
  UniqueFd connect() const {
    UniqueFd socket;
    if (!connect_locally(name, socket)) socket.reset();
    return socket;
  }
  uint64_t refused() const { return counters.get(Counter::local_refused); }
  size_t receive() {
    ReceiveBatch batch(8, 65536, 1024);
    size_t came = 0;
    for (int i = 0; i < 4; ++i) came += link->receive(batch);
    return came;
  }
  LocalPacket offer() const {
    return {.kind = LocalPacket::Kind::offer,
            .number = 7,
            .bytes = kLeastRing,
            .route = {.from = other->local_address(), .to = link->local_address()}};
  }

  Counters counters;
  ManualClock clock;
  TcpConnector connector;
  std::unique_ptr<LocalPeers> peers =
      std::make_unique<LocalPeers>(kOwnAddress, kSettings, connector, counters, clock);
  std::unique_ptr<LocalLink> link = std::make_unique<LocalLink>(UdpLink::open(kOwnAddress), *peers);
  const std::string name = local_name(::geteuid(), kOwnAddress, 0);
  std::unique_ptr<UdpLink> other = UdpLink::open(kOwnAddress);
};

size_t open_descriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                           std::filesystem::directory_iterator()));
}

void say(const UniqueFd& socket, const LocalPacket& packet, int descriptor = -1) {
  REQUIRE(send_packet(socket.get(), encode(packet), descriptor));
}

/// What the device answers; nothing: no answer, or the end of the connection.
std::optional<LocalPacket> answer(const UniqueFd& socket) {
  std::array<std::byte, kLocalPacketBytes> bytes;
  const auto got = receive_packet(socket.get(), bytes);
  return got ? decode_local_packet(ConstBytes(bytes).first(got->bytes)) : std::nullopt;
}

bool has_ended(const UniqueFd& socket) {
  std::array<std::byte, kLocalPacketBytes> bytes;
  const auto got = receive_packet(socket.get(), bytes);
  return got && got->bytes == 0;
}

NewSharedMemory ring() { return new_shared_memory(ring_memory(kLeastRing)).value(); }

/// In a process of its own: offers a ring, and waits for the end of the connection.
bool offer_and_wait(const Scene& scene) {
  const UniqueFd socket = scene.connect();
  const NewSharedMemory memory = ring();
  const bool sent = send_packet(socket.get(), encode(scene.offer()), memory.fd.get());
  pollfd one{.fd = socket.get(), .events = POLLIN, .revents = 0};
  return sent && ::poll(&one, 1, 10'000) == 1;
}

void serve_until_end(Scene& scene, pid_t peer) {
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 4000 && ended == 0; ++i) {
    scene.step();
    ended = ::waitpid(peer, &status, WNOHANG);
    if (ended == 0) ::usleep(5000);
  }
  REQUIRE(ended == peer);
  REQUIRE(status == 0);
}

/// The reason that an offer is refused for.
RingRefusal refusal(Scene& scene, const LocalPacket& offer, int descriptor) {
  const UniqueFd socket = scene.connect();
  const uint64_t before = scene.refused();
  say(socket, offer, descriptor);
  scene.step();
  const auto said = answer(socket);
  REQUIRE(said);
  CHECK(said->number == offer.number);
  CHECK((said->kind == LocalPacket::Kind::refused) == (scene.refused() == before + 1));
  return said->refusal;
}

UniqueFd unsealed(size_t bytes) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0);
  return fd;
}

TEST_CASE("a ring is taken that is as it should be, and what is in it is received") {
  Scene scene;
  const UniqueFd socket = scene.connect();
  const NewSharedMemory memory = ring();
  say(socket, scene.offer(), memory.fd.get());
  scene.step();
  REQUIRE(answer(socket)->kind == LocalPacket::Kind::taken);
  RingProducer producer(memory.memory.bytes());
  REQUIRE(producer.put({}, 0) == RingStatus::ok);
  say(socket, {.kind = LocalPacket::Kind::wake});
  scene.step();
  CHECK(scene.receive() == 1);
}

TEST_CASE("memory that is none, may shrink, or has another size is not mapped") {
  Scene scene;
  const size_t bytes = ring_memory(kLeastRing);
  const UniqueFd plain = unsealed(bytes);
  const NewSharedMemory small = new_shared_memory(bytes / 2).value();
  const NewSharedMemory right = ring();
  CHECK(refusal(scene, scene.offer(), plain.get()) == RingRefusal::memory);
  CHECK(refusal(scene, scene.offer(), small.fd.get()) == RingRefusal::memory);
  CHECK(refusal(scene, scene.offer(), -1) == RingRefusal::memory);
  for (const uint64_t size : {uint64_t{0}, uint64_t{kLeastRing / 2}, uint64_t{kLeastRing + 64},
                              uint64_t{2 * kMostRing}, ~uint64_t{0}}) {
    LocalPacket offer = scene.offer();
    offer.bytes = size;
    CHECK(refusal(scene, offer, right.fd.get()) == RingRefusal::memory);
  }
}

TEST_CASE("memory of which parts are missing, or may go missing, is not read") {
  Scene scene;
  const size_t bytes = ring_memory(kLeastRing);
  const UniqueFd sparse = unsealed(bytes);
  REQUIRE(::fcntl(sparse.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  CHECK(refusal(scene, scene.offer(), sparse.get()) == RingRefusal::memory);
  const NewSharedMemory closed = ring();
  REQUIRE(::fcntl(closed.fd.get(), F_ADD_SEALS, F_SEAL_SEAL) == 0);
  CHECK(refusal(scene, scene.offer(), closed.fd.get()) == RingRefusal::memory);
  const NewSharedMemory right = ring();
  CHECK(refusal(scene, scene.offer(), right.fd.get()) == RingRefusal::none);
  CHECK(may_not_be_punched(right.fd.get()));
  CHECK(::fallocate(right.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0);
  CHECK(errno == EPERM);
}

TEST_CASE("a process that may write no file of that size makes no ring, and is not ended for it") {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit small{.rlim_cur = 4096, .rlim_max = 4096};
    ::setrlimit(RLIMIT_FSIZE, &small);
    ::_exit(!new_shared_memory(ring_memory(kLeastRing)) && errno == EFBIG ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a descriptor that is none of memory ends the connection, and holds up nobody") {
  Scene scene;
  // Closing this one takes as long as its maker wants: its peer never takes what is sent.
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof any;
  auto* const address = reinterpret_cast<sockaddr*>(&any);
  REQUIRE(::bind(listener.get(), address, length) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), address, &length) == 0);
  UniqueFd sender(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(sender.get(), address, length) == 0);
  const std::vector<std::byte> data(1 << 20);
  const linger waits{.l_onoff = 1, .l_linger = 3600};
  REQUIRE(::setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &waits, sizeof waits) == 0);
  while (::send(sender.get(), data.data(), data.size(), MSG_DONTWAIT) > 0) {
  }
  const UniqueFd socket = scene.connect();
  scene.step();
  say(socket, scene.offer(), sender.get());
  sender.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));  // the last copy is in the packet
  scene.step();                                           // close(2) would wait for an hour
  CHECK(has_ended(socket));
}

TEST_CASE("arrivals beyond those that one look takes are accepted by the next ones") {
  Scene scene;
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < 40; ++i) sockets.push_back(scene.connect());
  for (const UniqueFd& socket : sockets) say(socket, {.kind = LocalPacket::Kind::ask, .number = 3});
  scene.step(16);
  size_t answered = 0;
  for (const UniqueFd& socket : sockets) answered += answer(socket).has_value() ? 1 : 0;
  CHECK(answered == sockets.size());
}

TEST_CASE("a connection that brings no ring is closed after some seconds") {
  Scene scene;
  const UniqueFd silent = scene.connect();
  scene.step();
  for (int i = 0; i < 8; ++i) {
    scene.clock.advance(std::chrono::milliseconds(1100));
    scene.step();
  }
  CHECK(has_ended(silent));
}

TEST_CASE("a child that the process forks does not keep its name") {
  Scene scene;
  int ends[2];
  int started[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::pipe(started) == 0);
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    ::close(ends[1]);
    if (::write(started[1], &byte, 1) != 1) ::_exit(1);
    static_cast<void>(::read(ends[0], &byte, 1));
    ::_exit(0);
  }
  REQUIRE(::read(started[0], &byte, 1) == 1);
  REQUIRE(scene.connect());
  scene.link->set_key(nullptr);
  scene.link.reset();
  scene.peers.reset();
  CHECK_FALSE(is_taken(scene.name));
  for (const int fd : {ends[0], ends[1], started[0], started[1]}) ::close(fd);
  int status = 0;
  ::waitpid(child, &status, 0);
}

TEST_CASE("a process of another PID namespace is not met") {
  if (::geteuid() != 0) {
    WARN("SKIPPED: needs root");
    return;
  }
  Scene scene;
  const uint64_t before = scene.refused();
  const pid_t peer = ::fork();
  if (peer == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(1);
    const pid_t inside = ::fork();
    if (inside == 0) {
      ::_exit(offer_and_wait(scene) ? 0 : 2);
    }
    int status = 0;
    ::waitpid(inside, &status, 0);
    ::_exit(WEXITSTATUS(status));
  }
  serve_until_end(scene, peer);
  CHECK(scene.refused() == before + 1);
  CHECK(scene.receive() == 0);
}

TEST_CASE("a ring comes from a socket of this user's, and goes to a link that is there") {
  Scene scene;
  const NewSharedMemory memory = ring();
  LocalPacket offer = scene.offer();
  offer.route.from = Address::parse("192.0.2.1:7");
  CHECK(refusal(scene, offer, memory.fd.get()) == RingRefusal::not_yours);
  offer.route.from = kOwnAddress;
  CHECK(refusal(scene, offer, memory.fd.get()) == RingRefusal::not_yours);
  offer = scene.offer();
  offer.route.to = kOwnAddress.with_port(1);
  CHECK(refusal(scene, offer, memory.fd.get()) == RingRefusal::no_queue_pair);
}

TEST_CASE("a device reads no more rings than it may have") {
  Scene scene;
  const UniqueFd socket = scene.connect();
  std::vector<NewSharedMemory> rings;
  for (uint32_t i = 0; i < kSettings.max_rings + 1; ++i) {
    rings.push_back(ring());
    LocalPacket offer = scene.offer();
    offer.number = i;
    say(socket, offer, rings.back().fd.get());
    scene.step();
    const auto said = answer(socket);
    REQUIRE(said);
    CHECK((said->kind == LocalPacket::Kind::taken) == (i < kSettings.max_rings));
  }
}

TEST_CASE("what is no packet, or none of a producer's, ends the connection") {
  Scene scene;
  const auto send = [](const UniqueFd& socket, ConstBytes bytes) {
    REQUIRE(send_packet(socket.get(), bytes));
  };
  Random random(5);
  for (int i = 0; i < 50; ++i) {
    const UniqueFd socket = scene.connect();
    std::array<std::byte, 300> noise;
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random.next());
    noise[0] = static_cast<std::byte>(100 + random.below(100));  // no kind
    send(socket, ConstBytes(noise).first(1 + random.below(noise.size())));
    scene.step();
    CHECK(has_ended(socket));
  }
  for (const auto kind : {LocalPacket::Kind::here, LocalPacket::Kind::absent,
                          LocalPacket::Kind::taken, LocalPacket::Kind::refused}) {
    const UniqueFd socket = scene.connect();
    say(socket, {.kind = kind});
    scene.step();
    CHECK(has_ended(socket));
  }
}

TEST_CASE("descriptors that nobody asked for are closed, and floods are taken in parts") {
  Scene scene;
  const UniqueFd socket = scene.connect();
  scene.step();
  const NewSharedMemory memory = ring();
  const size_t before = open_descriptors();
  size_t sent = 0;
  while (sent < 1000 &&
         send_packet(socket.get(), encode({.kind = LocalPacket::Kind::wake}), memory.fd.get()))
    ++sent;
  CHECK(sent > 0);
  scene.step(100);
  CHECK(open_descriptors() == before);
  say(socket, {.kind = LocalPacket::Kind::ask,
               .number = 3,
               .route = {.from = {}, .to = scene.link->local_address()}});
  scene.step();
  CHECK(answer(socket)->kind == LocalPacket::Kind::here);
}

TEST_CASE("a ring ends with its process, though a child of that holds the socket") {
  Scene scene;
  const int before = static_cast<int>(open_descriptors());
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t peer = ::fork();
  if (peer == 0) {
    const UniqueFd socket = scene.connect();
    const NewSharedMemory memory = ring();
    send_packet(socket.get(), encode(scene.offer()), memory.fd.get());
    if (::fork() == 0) {  // it keeps the socket until the test is over
      ::close(ends[1]);
      char byte = 0;
      static_cast<void>(::read(ends[0], &byte, 1));
    }
    ::_exit(0);
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(peer, &status, 0) == peer);
  scene.step();
  scene.receive();
  scene.step();
  CHECK(static_cast<int>(open_descriptors()) == before + 1);  // the pipe's end
  ::close(ends[1]);
}

TEST_CASE("a device of another user is not met") {
  if (::geteuid() != 0) {
    WARN("SKIPPED: needs root");
    return;
  }
  Scene scene;
  const uint64_t before = scene.refused();
  const pid_t peer = ::fork();
  if (peer == 0) {
    constexpr uid_t kNobody = 65534;
    if (::setuid(kNobody) != 0) ::_exit(1);
    ::_exit(offer_and_wait(scene) ? 0 : 2);
  }
  serve_until_end(scene, peer);
  CHECK(scene.refused() == before + 1);
  CHECK(scene.receive() == 0);
}

TEST_CASE("a process that connects and ends is not counted as refused") {
  Scene scene;
  const uint64_t before = scene.refused();
  const pid_t peer = ::fork();
  if (peer == 0) ::_exit(scene.connect() ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(peer, &status, 0) == peer);
  REQUIRE(status == 0);
  scene.step();
  CHECK(scene.refused() == before);
}

TEST_CASE("a process that writes anything into a ring while it is read does no harm") {
  const NewSharedMemory memory = ring();
  const pid_t writer = ::fork();
  if (writer == 0) {
    const auto own = SharedMemory::map(memory.fd.get(), ring_memory(kLeastRing));
    Random random(9);
    auto* const words = reinterpret_cast<uint64_t*>(own->bytes().data());
    const size_t count = own->bytes().size() / sizeof(uint64_t);
    for (;;) {
      // Now and then what looks like a header.
      const size_t place = random.below(count) / 8 * 8;
      __atomic_store_n(&words[place],
                       random.chance(0.5)
                           ? EntryHeader::of(EntryHeader::Kind::datagram, random.below(2000)).word()
                           : random.next() >> random.below(64),
                       __ATOMIC_RELAXED);
    }
  }
  constexpr int kLooks = 10'000'000;
  std::vector<std::byte> room(kMaxDatagram);
  std::array<size_t, 5> seen{};
  auto consumer = std::make_unique<RingConsumer>(memory.memory.bytes());
  auto producer = std::make_unique<RingProducer>(memory.memory.bytes());
  for (int i = 0; i < kLooks; ++i) {
    const auto next = consumer->take(room);
    ++seen[static_cast<size_t>(next.status)];
    if (next.status == RingStatus::ok) REQUIRE(next.length <= kMaxDatagram);
    if (next.status == RingStatus::broken)
      consumer = std::make_unique<RingConsumer>(memory.memory.bytes());
    if (i % 16 == 0 && producer->put({}, 0) == RingStatus::broken)
      producer = std::make_unique<RingProducer>(memory.memory.bytes());
    if (i % 64 == 0) consumer->give_back();
  }
  ::kill(writer, SIGKILL);
  int status = 0;
  ::waitpid(writer, &status, 0);
  CHECK(seen[static_cast<size_t>(RingStatus::broken)] > 0);
}

}  // namespace
}  // namespace diwarp::llp
