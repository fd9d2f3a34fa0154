// SPDX-License-Identifier: Apache-2.0
#include <diwarp/verbs.h>

#include "llp/local/local_stream.h"
#include "stack/cm_support.h"
#include "stack/rc_support.h"
#include "stack/read_scene.h"
#include "stack/record_scene.h"
#include "unit/base/failing_allocation.h"

using namespace diwarp;
using namespace diwarp::test;

/// Each allocation that input causes fails in turn: nothing is thrown out of the engine, and the
/// device serves on afterwards.

namespace {

/// Makes a scene, runs it with its nth allocation failing, and asks whether it still works; for all
/// n there are. A scene has run(), which allocates nothing itself, and works(); it joins in by its
/// name in a list below.
template <class Scene>
void fail_each_allocation(bool lasting) {
  constexpr size_t kMost = 2000;
  bool happened = true;
  size_t nth = 0;
  for (; happened && nth < kMost; ++nth) {
    CAPTURE(nth, lasting);
    Scene scene;
    bool thrown = false;
    {
      const FailingAllocation failing(nth, lasting);
      try {
        scene.run();
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      happened = FailingAllocation::happened();
    }
    REQUIRE_FALSE(thrown);
    REQUIRE(scene.works());
  }
  CHECK(nth < kMost);
  CHECK(nth > 1);  // or nothing failed
}

using Octets = std::vector<std::byte>;

/// A target, and someone who sends it what was written beforehand.
struct Incoming {
  explicit Incoming(const PartyOptions& options = {.datagram = {.message_timeout = 5ms}})
      : target(world.add_device(), options),
        region(target.pd, std::span(target.memory), kWritable, kBase),
        link(world.network->open(Address::parse("10.0.1.1"))) {
    target.post_receives(32, 100);
  }

  void prepare(const Segment& segment) { datagrams.push_back(to_bytes(segment)); }
  void prepare(const Control& control) { datagrams.push_back(to_bytes(control)); }
  Segment record(uint32_t msn, uint32_t offset, uint32_t size, uint32_t length) const {
    return {.msn = msn,
            .offset = offset,
            .last = offset + size == length,
            .payload = pattern(size, msn),
            .opcode = kWriteRecord,
            .stag = region.rkey(),
            .tagged_offset = kBase + offset,
            .message_length = length};
  }
  void run() { run(target.address()); }
  void run(const Address& to) {
    for (const Octets& datagram : datagrams) {
      const ConstBytes piece(datagram);
      const llp::OutgoingDatagram outgoing{to, {&piece, 1}};
      link->send({&outgoing, 1});
      world.settle();
    }
    world.advance(10ms);
  }
  /// A Send and a Write-Record of a source that comes now arrive.
  bool works() {
    drain(target.recv_cq);
    Stranger honest(world);
    honest.send(target.address(), Segment{.msn = 1, .payload = pattern(50, 1)});
    honest.send(target.address(), record(1, 0, 50, 50));
    world.settle();
    size_t good = 0;
    for (const WorkCompletion& completion : drain(target.recv_cq))
      if (completion.status == WcStatus::success && completion.byte_count == 50) ++good;
    return good == 2;
  }

  World world;
  Party target;
  MemoryRegion region;
  std::unique_ptr<llp::DatagramLink> link;
  std::vector<Octets> datagrams;
};

struct Sends : Incoming {
  Sends() {
    for (uint32_t msn : {1U, 5U, 3U, 9U, 7U, 11U, 13U, 2U})
      prepare(Segment{.msn = msn, .payload = pattern(100, msn)});
    for (uint32_t incarnation : {1U, 2U, 3U})
      for (uint32_t offset : {0U, 40U, 80U, 20U, 60U})
        prepare(Segment{.incarnation = incarnation,
                        .msn = 20,
                        .offset = offset,
                        .last = offset == 80,
                        .payload = pattern(10, offset)});
    for (uint32_t offset = 0; offset < 12; ++offset)  // many gaps
      prepare(Segment{.msn = 21, .offset = 2 * offset, .last = false, .payload = pattern(1, 1)});
    for (uint32_t msn : {30U, 32U, 34U, 36U, 38U, 40U})  // refused, and told of
      prepare(Segment{.msn = msn, .payload = pattern(101, msn)});
    prepare(Segment{.msn = 50, .payload = pattern(10, 1), .immediate = 5});
  }
};

struct Records : Incoming {
  Records() {
    for (uint32_t msn : {1U, 5U, 3U, 9U, 7U, 11U, 13U, 2U}) prepare(record(msn, 0, 50, 50));
    for (uint32_t offset : {0U, 200U, 400U, 600U, 800U, 950U, 100U})
      prepare(record(20, offset, 50, 1000));
    for (uint32_t msn : {30U, 32U, 34U, 36U, 38U, 40U}) prepare(record(msn, 0, 10, 50));
    Segment wrong = record(60, 0, 10, 10);
    wrong.stag ^= 0x100;
    prepare(wrong);
  }
};

struct SegmentsOfRecords : Incoming {
  SegmentsOfRecords()
      : Incoming({.datagram = {.record_completion = RecordCompletion::per_segment}}) {
    for (uint32_t offset : {0U, 50U, 100U}) prepare(record(1, offset, 50, 200));
  }
};

struct ControlMessages : Incoming {
  ControlMessages() {
    for (uint8_t type : {kChallenge, kEcho}) prepare(Control{.type = type, .content = Octets(16)});
    prepare(error_about(record(1, 0, 10, 10), 1, 1, 0));
    prepare(Segment{
        .opcode = kReadRequest, .sink_stag = 1, .read_length = 1 << 16, .source_stag = 0x12345600});
    prepare(Segment{
        .opcode = kReadRequest, .sink_stag = 1, .read_length = 1, .source_stag = 0x12345600});
  }
};

struct Groups : Incoming {
  Groups() {
    target.qp.join(group);
    for (uint32_t msn : {1U, 5U, 3U}) prepare(Segment{.msn = msn, .payload = pattern(100, msn)});
    prepare(record(1, 0, 50, 100));
    prepare(record(1, 50, 50, 100));
  }
  void run() { Incoming::run(group.with_port(target.address().port())); }
  Address group = Address::parse("239.1.2.3");
};

/// A completion queue that is full, with an event queue, and a channel.
struct FullQueues : Incoming {
  FullQueues() : Incoming({.receive_entries = 2}), events(world.devices[0]) {
    for (uint32_t msn = 1; msn < 9; ++msn)
      prepare(Segment{.msn = msn, .payload = pattern(10, msn)});
    prepare(record(1, 0, 50, 50));
    target.recv_cq.arm();
  }
  bool works() {
    for (int i = 0; i < 10; ++i) {
      drain(target.recv_cq);
      world.settle();
    }
    return Incoming::works();
  }
  EventQueue events;
};

/// Two who read, from both ends, over a link that loses some.
struct Reads {
  Reads()
      : reader(world.add_device(), {.memory = 1 << 20}),
        target(world.add_device(), {.memory = 1 << 20}),
        source(target.pd, target.memory, Access::remote_read) {}
  bool post(size_t length) {
    const Sge sge = reader.mr.sge(0, length);
    return !reader.qp.post_read(
        {.sges = {sge}, .destination = target.address(), .remote = {source.rkey(), source.base()}});
  }
  void run() {
    for (size_t length : {size_t{10}, size_t{300'000}, size_t{0}}) {
      if (!post(length)) continue;
      world.settle();
    }
    for (int i = 0; i < 20; ++i) world.advance(50ms);
  }
  bool works() {
    world.advance(1s);
    drain(reader.send_cq);
    if (!post(100'000)) return false;
    world.settle();
    const auto done = drain(reader.send_cq);
    return done.size() == 1 && done[0].status == WcStatus::success;
  }

  World world;
  Party reader;
  Party target;
  MemoryRegion source;
};

// --- RC.

/// Two devices with a connection of which either end may be lost, and then another.
struct Streams {
  explicit Streams(size_t buffer = 10'000, bool markers = false)
      : a(world.add_device(), {.memory = 1 << 17, .access = kOpen}),
        b(world.add_device(), {.memory = 1 << 17, .access = kOpen}) {
    join(a, b, llp::memory_stream_pair(buffer, 1460),
         {.send_markers = markers, .receive_markers = markers});
    world.settle();
  }
  /// A request of any kind that names b's memory where it has to.
  void post(WrOpcode opcode, size_t length) {
    const Sge sge = a.mr->sge(0, length);
    static_cast<void>(a.qp.post_send(
        {.sges = {&sge, 1}, .opcode = opcode, .remote = {b.mr->rkey(), b.mr->base()}}));
    world.settle();
  }
  bool works() {
    world.advance(2s);
    RcParty c(world.devices[0]);
    RcParty d(world.devices[1]);
    join(c, d, llp::memory_stream_pair(10'000, 1460));
    if (d.post_recv(1, 0, 5000) || c.send(0, 5000)) return false;
    world.settle();
    const auto done = drain(d.recv_cq);
    return done.size() == 1 && done[0].status == WcStatus::success;
  }

  World world;
  RcParty a;
  RcParty b;
};

struct RcSends : Streams {
  using Streams::Streams;
  void run() {
    post(WrOpcode::send, 9000);  // finds no receive, and is carried
    post(WrOpcode::send, 100);
    for (int i = 0; i < 4; ++i) static_cast<void>(b.post_recv(0, 0, 20'000));
    world.settle();
    post(WrOpcode::send, 20'000);
    world.advance(2s);  // carried memory is trimmed
    post(WrOpcode::send, 20'000);
  }
};

struct RcSendsWithMarkers : RcSends {
  RcSendsWithMarkers() : RcSends(10'000, true) {}
};

struct RcOperations : Streams {
  void run() {
    for (WrOpcode opcode : {WrOpcode::rdma_write, WrOpcode::rdma_read}) post(opcode, 30'000);
    post(WrOpcode::fetch_add, 8);
    post(WrOpcode::rdma_read, 1);
    post(WrOpcode::rdma_read, 100'000);
  }
};

/// A fault, of which events tell, ends the connection with a Terminate.
struct RcFaults : Streams {
  RcFaults() : events_of_a(world.devices[0]), events_of_b(world.devices[1]) {}
  void run() {
    const Sge sge = a.mr->sge(0, 10);
    static_cast<void>(a.qp.post_send(
        {.sges = {&sge, 1}, .opcode = WrOpcode::rdma_write, .remote = {b.mr->rkey() ^ 1, 0}}));
    world.settle();
  }
  EventQueue events_of_a;
  EventQueue events_of_b;
};

/// A listener whose peers speak with plain sockets.
struct RcStartup {
  RcStartup() : device(Device::open("127.0.0.1", {.progress = Progress::manual})) {
    listener.emplace(device, 0);
    step();
    for (int i = 0; i < 3; ++i) {
      peers.push_back(RawStream::connect(listener->address()));
      if (i == 1) good = peers[1].send(to_bytes(MpaFrame{.private_data = Octets(100)}));
      if (i == 2) good = good && peers[2].send(Octets(64));
    }
  }
  void step() {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(30us);
      device.progress();
    }
  }
  void run() { step(); }
  bool works() {
    const Octets name = text("last");
    RawStream last = RawStream::connect(listener->address());
    if (!good || !last.send(to_bytes(MpaFrame{.private_data = name}))) return false;
    const Time deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      device.progress();
      std::optional<ConnectionRequest> request = listener->get_request(0ns);
      if (!request) continue;
      const auto data = request->private_data();
      if (same(data, name)) return true;
    }
    return false;
  }

  Device device;
  std::optional<Listener> listener;
  std::vector<RawStream> peers;
  bool good = false;
};

/// A fault over TCP: the control path sends the final bytes.
struct RcLastWords {
  RcLastWords()
      : device(Device::open("127.0.0.1", {.progress = Progress::manual})),
        listener(device, 0),  // begins the control path
        party(device) {
    auto [ours, theirs] = raw_pair();
    peer.emplace(std::move(theirs));
    party.impl().start(negotiated(stream_of(std::move(ours)), false));
    Fpdu unwanted{.opcode = 15};
    good = peer->send(fpdu_bytes(unwanted));
  }
  void run() {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(30us);
      device.progress();
    }
  }
  bool works() {
    run();
    return good && party.qp.state() == QpState::error;
  }

  Device device;
  Listener listener;
  RcParty party;
  std::optional<RawStream> peer;
  bool good = false;
};

// --- The connection manager.

/// A device with a listening id.
struct Managed {
  explicit Managed(const ListenOptions& options = {})
      : server({.progress = Progress::manual}, options) {}
  void step() {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(30us);
      server.device.progress();
    }
  }
  void run() { step(); }
  /// Whether the next event is this one, unless one was lost for want of memory, which is counted.
  bool told(CmEventChannel& channel, CmEventType expected) const {
    const Device& device = server.device;
    if (device.counter("drop_no_memory") + device.counter("events_dropped") != 0) return true;
    const std::optional<CmEvent> event = channel.get_event(kPatience);
    return event && event->type == expected;
  }
  /// An id that comes now is connected; or one that comes later, where the listener was full.
  bool works() {
    const Time deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      while (server.channel.get_event(0ns)) continue;
      if (connects()) return true;
    }
    return false;
  }
  bool connects() {
    RcParty party(server.device);
    CmClient last(server.device);
    const Octets name = text("last");
    last.connect(server.listener.local_address(), {.private_data = name});
    std::optional<CmId> accepted;
    std::optional<CmEvent> told;  // it comes: connecting has a time-out
    while (!told) {
      std::optional<CmEvent> event = server.channel.get_event(0ns);
      if (event && event->request && event->private_data == name) {
        accepted.emplace(std::move(*event->request));
        accepted->accept(party.qp);
      }
      told = last.channel.get_event(0ns);
    }
    return told->type == CmEventType::established;
  }

  CmServer server;
};

/// Plain sockets ask for more connections than the listener keeps requests, so that one request
/// gives way to another address.
struct CmRequests : Managed {
  CmRequests() : Managed({.max_requests = 2}) {
    for (const int host : {2, 2, 2, 3}) {
      peers.push_back(connect_from(host, server.listener.local_address()));
      good = peers.back().send(to_bytes(MpaFrame{.private_data = Octets(100)})) && good;
    }
  }
  bool works() { return good && Managed::works(); }

  std::vector<RawStream> peers;
  bool good = true;
};

/// An id connects, and the listening one is told.
struct CmConnects : Managed {
  CmConnects() { client.connect(server.listener.local_address()); }
  bool works() { return told(server.channel, CmEventType::connect_request) && Managed::works(); }

  CmClient client{server.device};
};

/// An id that connects is accepted. The call may throw for want of memory, which is no matter here.
struct CmAccepts : CmConnects {
  CmAccepts() : accepted(std::move(*server.request().request)) {}
  void run() {
    try {
      accepted.accept(server.party.qp);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    step();
  }
  bool works() { return (refused || both_told(CmEventType::established)) && Managed::works(); }
  bool both_told(CmEventType expected) {
    return told(server.channel, expected) && told(client.channel, expected);
  }

  CmId accepted;
  bool refused = false;
};

/// A connection ends in order.
struct CmEnds : CmAccepts {
  CmEnds() {
    accepted.accept(server.party.qp);
    next_event(client.channel, CmEventType::established);
    next_event(server.channel, CmEventType::established);
    client.id->disconnect();
  }
  void run() { step(); }
  bool works() { return both_told(CmEventType::disconnected) && Managed::works(); }
};

// --- RD.

/// Two RD queue pairs that talk to each other, and lose what there is no memory for.
struct Reliable {
  Reliable()
      : world({.queue_datagrams = 512}),
        a(world.add_device(), options()),
        b(world.add_device(), options()) {
    a.post_receives(16, 500);
    b.post_receives(16, 500);
  }
  static PartyOptions options() {
    PartyOptions chosen{.datagram = {.segment = 192}};
    chosen.type = QpType::rd;
    return chosen;
  }
  /// A post may be refused for want of memory, which is no matter here.
  void run() {
    for (int i = 0; i < 2; ++i) {
      static_cast<void>(a.send(b.address(), 0, 400));
      static_cast<void>(b.send(a.address(), 0, 400));
      world.settle();
    }
    for (int i = 0; i < 20; ++i) world.advance(10ms);
  }
  /// Work that was begun ends within a while, and a Send each way succeeds afterwards.
  bool works() {
    for (int i = 0; i < 3000; ++i) world.advance(10ms);
    drain(a.send_cq);
    drain(b.send_cq);
    if (a.send(b.address(), 0, 300, 77) || b.send(a.address(), 0, 300, 77)) return false;
    for (int i = 0; i < 300; ++i) world.advance(10ms);
    return sent(a) && sent(b);
  }
  static bool sent(Party& party) {
    const auto done = drain(party.send_cq);
    return done.size() == 1 && done[0].wr_id == 77 && done[0].status == WcStatus::success;
  }

  World world;
  Party a;
  Party b;
};

/// The same with Write-Records and Reads.
struct ReliableOperations : Reliable {
  void run() {
    for (const WrOpcode opcode : {WrOpcode::write_record, WrOpcode::rdma_read}) {
      post(a, b, opcode);
      post(b, a, opcode);
      world.settle();
    }
    for (int i = 0; i < 20; ++i) world.advance(10ms);
  }
  void post(Party& from, Party& to, WrOpcode opcode) {
    MemoryRegion& target = &to == &a ? region_of_a : region_of_b;
    const Sge sge = from.mr.sge(0, 400);
    static_cast<void>(from.qp.post_send({.sges = {&sge, 1},
                                         .destination = to.address(),
                                         .opcode = opcode,
                                         .remote = {target.rkey(), target.base()}}));
  }

  std::vector<std::byte> memory_of_a = std::vector<std::byte>(400);
  std::vector<std::byte> memory_of_b = std::vector<std::byte>(400);
  MemoryRegion region_of_a{a.pd, std::span(memory_of_a), Access::remote_read | kWritable};
  MemoryRegion region_of_b{b.pd, std::span(memory_of_b), Access::remote_read | kWritable};
};

/// Both send to two others with one shared receive queue. A Send of several segments holds one of
/// its receives, and each address may hold one.
struct ReliableShares : Reliable {
  static constexpr size_t kReceives = 4;

  ReliableShares() { post_receives(kReceives); }
  QueuePairInit init() const {
    return {.type = QpType::rd,
            .send_cq = cq,
            .recv_cq = cq,
            .datagram = options().datagram,
            .srq = srq};
  }
  void post_receives(size_t count) {
    const Sge sge = mr.sge(0, memory.size());
    for (size_t i = 0; i < count; ++i) REQUIRE_FALSE(srq.post_recv({.sges = {&sge, 1}}));
  }
  void run() {
    for (QueuePair* const to : {&one, &other}) {
      static_cast<void>(a.send(to->address(), 0, 400));
      static_cast<void>(b.send(to->address(), 0, 400));
      world.settle();
    }
    for (int i = 0; i < 20; ++i) world.advance(10ms);
  }
  /// Every share has been given back.
  bool works() {
    if (!Reliable::works()) return false;
    post_receives(drain(cq).size());
    for (QueuePair* const to : {&one, &other}) {
      if (a.send(to->address(), 0, 400, 77) || b.send(to->address(), 0, 400, 77)) return false;
      for (int i = 0; i < 300; ++i) world.advance(10ms);
      if (!sent(a) || !sent(b)) return false;
    }
    return true;
  }

  Device& device = world.add_device();
  ProtectionDomain pd{device};
  CompletionQueue cq{device, 64};
  SharedReceiveQueue srq{pd};
  std::vector<std::byte> memory = std::vector<std::byte>(500);
  MemoryRegion mr{pd, std::span(memory)};
  QueuePair one{pd, init()};
  QueuePair other{pd, init()};
};

// --- Through shared memory.

/// Two devices of this host, whose second burst to each other asks for a ring.
struct Neighbours {
  Device open() const {
    const DeviceOptions options{.progress = Progress::manual,
                                .local = LocalPath::automatic,
                                .local_after = 2,
                                .local_ring = size_t{256} << 10};
    rnic::DeviceParts parts;
    parts.clock = &clock;
    return handle_of<Device>(
        std::make_shared<rnic::Device>(Address::parse("127.0.0.1"), options, parts));
  }
  void step(int times = 4) {
    for (int i = 0; i < times; ++i)
      for (Device& device : devices) device.progress();
  }
  /// Time for each to look at what the other says, which a silent device does every 256th step.
  void look() {
    clock.advance(100ms);
    step(257);
  }
  bool met() const { return devices[0].counter("local_peers") != 0; }

  ManualClock clock;
  std::array<Device, 2> devices = {open(), open()};
};

/// Datagrams, the first of which go by UDP. A post may be refused for want of memory.
struct LocalDatagrams : Neighbours {
  LocalDatagrams() { post_receives(); }
  void post_receives() {
    a.post_receives(16, 100);
    b.post_receives(16, 100);
  }
  void run() {
    for (int i = 0; i < 8; ++i) {
      static_cast<void>(a.send(b.address(), 0, 100));
      static_cast<void>(b.send(a.address(), 0, 100));
      step();
    }
  }
  /// A ring that was not made is sought again.
  bool works() {
    const Time deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      b.post_receives(drain(b.recv_cq).size(), 100);
      drain(a.send_cq);
      if (a.send(b.address(), 0, 100, 77)) return false;
      look();
      for (const WorkCompletion& completion : drain(b.recv_cq)) {
        if (completion.status == WcStatus::success && met()) return true;
        b.post_receives(1, 100);
      }
    }
    return false;
  }

  Party a{devices[0]};
  Party b{devices[1]};
};

/// A connection that goes over to rings in both directions. It may be lost, and then another one
/// works.
struct LocalStreams : Neighbours {
  LocalStreams() {
    connect(a, b);
    step();
  }
  static std::unique_ptr<llp::Stream> stream_that_leaves(RawStream socket) {
    return std::make_unique<llp::LocalStream>(stream_of(std::move(socket)), true);
  }
  static void connect(RcParty& one, RcParty& other) {
    auto [first, second] = raw_pair();
    join(one, other, {stream_that_leaves(std::move(first)), stream_that_leaves(std::move(second))});
  }
  void exchange(RcParty& one, RcParty& other) {
    static_cast<void>(other.post_recv(0, 0, 5000));
    static_cast<void>(one.send(0, 5000));
    step();
  }
  void run() {
    for (int i = 0; i < 6; ++i) {
      exchange(a, b);
      exchange(b, a);
    }
  }
  bool works() {
    RcParty c(devices[0]);
    RcParty d(devices[1]);
    connect(c, d);
    const Time deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      exchange(c, d);
      look();
      for (const WorkCompletion& completion : drain(d.recv_cq))
        if (completion.status == WcStatus::success && met()) return true;
      drain(c.send_cq);
    }
    return false;
  }

  RcParty a{devices[0]};
  RcParty b{devices[1]};
};

}  // namespace

TEMPLATE_TEST_CASE("no allocation that datagrams cause throws out of the engine when it fails", "",
                   Sends, Records, SegmentsOfRecords, ControlMessages, Groups, FullQueues, Reads,
                   Reliable, ReliableOperations, ReliableShares) {
  const bool lasting = GENERATE(false, true);
  fail_each_allocation<TestType>(lasting);
}

TEMPLATE_TEST_CASE("no allocation that RC peers cause throws out of the engine when it fails", "",
                   RcSends, RcSendsWithMarkers, RcOperations, RcFaults, RcStartup, RcLastWords) {
  const bool lasting = GENERATE(false, true);
  fail_each_allocation<TestType>(lasting);
}

TEMPLATE_TEST_CASE("no allocation of the connection manager throws out of the engine when it fails",
                   "", CmRequests, CmConnects, CmAccepts, CmEnds) {
  const bool lasting = GENERATE(false, true);
  fail_each_allocation<TestType>(lasting);
}

TEMPLATE_TEST_CASE("no allocation of devices that meet throws out of the engine when it fails", "",
                   LocalDatagrams, LocalStreams) {
  const bool lasting = GENERATE(false, true);
  fail_each_allocation<TestType>(lasting);
}

TEST_CASE("a datagram dropped for want of memory is counted") {
  Incoming scene;
  scene.prepare(Segment{.msn = 1, .payload = pattern(10, 1)});
  {
    const FailingAllocation failing(0, true);
    scene.run();
  }
  CHECK(scene.world.devices[0].counter("drop_no_memory") == 1);
  CHECK(scene.works());
}

TEST_CASE("listeners and ids of a device with a thread end without memory") {
  const Device device = Device::open("127.0.0.1");
  std::optional<Listener> listener(std::in_place, device, 0);
  const CmEventChannel channel;
  std::optional<CmId> id(std::in_place, device, channel);
  id->listen();
  {
    const FailingAllocation failing(0, true);
    listener.reset();
    id.reset();
  }
  const Listener next(device, 0);
  CHECK(next.address().port() != 0);
}
