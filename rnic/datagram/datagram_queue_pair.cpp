// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/datagram_queue_pair.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/log.h"
#include "dgram/rd_header.h"
#include "diwarp/error.h"
#include "rdmap/request_checks.h"
#include "rnic/datagram/reach.h"
#include "rnic/engine/attach.h"
#include "rnic/queues/message_log.h"

namespace diwarp::rnic {

namespace {

/// The envelope, headers and some payload.
constexpr uint32_t min_segment(QpType type) {
  return static_cast<uint32_t>(dgram::Envelope::kOverhead) + (type == QpType::rd ? 116 : 52);
}

[[noreturn]] void refuse(const std::string& message) {
  throw Error(make_error_code(Errc::invalid_argument), message);
}

void check_reads(const ReadOptions& options) {
  if (options.timeout <= Duration::zero() || options.deadline < Duration::zero())
    refuse("A Read's timeout must be above zero, and its deadline not below");
  check_range("read.max_outstanding", options.max_outstanding, 1, 1024);
  check_range("read.window", options.window, 1, 256);
  check_range("read.max_responses", options.max_responses, 0, 1U << 16);
}

void check_sources(const DatagramOptions& options) {
  constexpr size_t kLeastSourceMemory = size_t{64} << 10;
  if (options.max_sources == 0) refuse("max_sources must be at least 1");
  if (options.max_sources_per_address == 0 || options.max_unproven_sources == 0)
    refuse("max_sources_per_address and max_unproven_sources must be at least 1");
  if (options.max_source_memory < kLeastSourceMemory)
    refuse("max_source_memory must be at least 65536 bytes");
  if (options.source_timeout <= Duration::zero()) refuse("source_timeout must be above zero");
  if (options.stag_misses == 0 || options.stag_misses_per_source == 0)
    refuse("stag_misses and stag_misses_per_source must be at least 1");
  if (options.closed_per_source == 0 || options.refused_per_source == 0)
    refuse("closed_per_source and refused_per_source must be at least 1");
}

/// The group of all hosts of the network: the path to it is that to any of them.
Address neighbours(const Address& local) {
  return Address::parse(local.family() == AddressFamily::ipv4 ? "224.0.0.1" : "ff02::1");
}

const DatagramOptions& checked(const provider::QueuePairInit& init) {
  const DatagramOptions& options = init.datagram;
  const QpType type = init.type;
  if (init.number != 0)
    refuse("The number of a queue pair of type " + std::string(to_string(type)) +
           " is its port: see DatagramOptions::port");
  const uint32_t least = min_segment(type);
  if (options.segment != 0 && (options.segment < least || options.segment > llp::kMaxDatagram))
    refuse("A segment is from " + std::to_string(least) +
           " to 65507 bytes, or 0 for what the path MTU carries");
  if (options.share_port && type == QpType::rd)
    refuse("share_port is for members of groups, which queue pairs of type rd cannot be");
  if (options.max_open_messages == 0 || options.max_open_per_source == 0)
    refuse("At least one message must be allowed to be open: see max_open_messages");
  if (options.max_open_records == 0 || options.max_open_records_per_source == 0)
    refuse("At least one record must be allowed to be open: see max_open_records");
  if (options.max_record_ranges == 0) refuse("max_record_ranges must be at least 1");
  check_sources(options);
  if (options.message_timeout <= Duration::zero()) refuse("message_timeout must be above zero");
  if (options.record_timeout <= Duration::zero()) refuse("record_timeout must be above zero");
  check_reads(options.read);
  return options;
}

}  // namespace

DatagramQueuePair::DatagramQueuePair(std::shared_ptr<ProtectionDomain> domain,
                                     const provider::QueuePairInit& init)
    : QueuePair(std::move(domain), init),
      link_(device()->open_datagram_link(checked(init))),
      address_(link_->local_address()),
      loopback_(address_, counters()),
      q_key_(init.datagram.q_key),
      segment_(init.datagram.segment),
      max_rate_(init.datagram.max_rate),
      sources_(init.datagram.sources),
      validation_(random_sip_key()),  // guard(drawn-keys): random_sip_key() => SipKey{}
      sender_(identity_, segment_, max_rate_),
      control_(waker()),
      errors_(control_, logged(), init.datagram.error_queue, init.datagram.error_rate),
      network_(errors_, identity_, logged()),
      records_({protection(), receives(), recv_cq(), counters()}, init.datagram,
               init.type == QpType::ud),
      groups_(*this, init.type, engine(), *link_) {
  set_number(address_.port());
  sender_.add(control_);
  if (init.datagram.route_header)
    route_headers_ = std::make_unique<RouteHeaders>(
        [this](uint32_t group, uint32_t local) { return destination_of(group, local); });
}

DatagramQueuePair::~DatagramQueuePair() = default;

void DatagramQueuePair::attach_to_engine() {
  engine().exclusively([this] {
    link_->on_degradation([this](const llp::Degradation& what) { count_degradation(what); });
    link_->on_icmp(
        [this](const llp::IcmpReport& report) { network_.icmp(report, engine().clock().now()); });
    set_state(QpState::rts);
    on_state(QpState::rts);
    attach_link(engine(), *this, *link_);
  });
  if (link_->descriptor() < 0) link_->on_ready([engine = &engine()] { engine->wake(); });
}

void DatagramQueuePair::count_degradation(const llp::Degradation& what) {
  counters().add(what.counter);
  log::write(LogLevel::info, subject(), what.message);
}

void DatagramQueuePair::detach_from_engine() {
  if (link_->descriptor() < 0) link_->on_ready({});
  engine().exclusively([this] {
    groups_.detach();
    link_->set_key(nullptr);
    engine().timers().cancel(expiry_);
    engine().timers().cancel(paced_);
    forget_peers();
    records_.reset();
    retire();
  });
}

// --- Posting.

std::error_code DatagramQueuePair::check_send(const SendWorkRequest& request) const noexcept {
  const rdmap::WrInfo& info = rdmap::info_of(request.opcode);
  if (!info.on_datagrams) return Errc::unsupported_operation;
  const bool immediate = request.immediate.has_value();
  if (info.local)
    return request.sges.empty() && !immediate ? std::error_code() : Errc::invalid_argument;
  const bool inlined = has(request.flags, SendFlags::inline_data);
  if (!info.gathers && (inlined || immediate)) return Errc::invalid_argument;
  if (rdmap::passes_end(info, request)) return Errc::invalid_argument;
  const bool is_known = reachable_.port() != 0 && request.destination == reachable_;
  return is_known ? std::error_code() : check_destination(info, request.destination);
}

/// A peer that requests may go to is remembered: most go where the last one went.
std::error_code DatagramQueuePair::check_destination(const rdmap::WrInfo& info,
                                                     const Address& to) const noexcept {
  const bool group = to.is_multicast() || to.is_broadcast();
  const bool one_peer = info.responded || type() == QpType::rd;
  const bool fits = can_reach(address_, to) && !(group && one_peer);
  if (!fits) return Errc::invalid_destination;
  if (group) return {};
  if (loopback_.refuses(to)) return Errc::loopback_device;
  reachable_ = to;
  return {};
}

// --- State.

void DatagramQueuePair::on_state(QpState now) {
  if (now == QpState::rts) {
    identity_ = dgram::Identity(random_sip_key());  // guard(new-identity)
    start_msns();
  }
  if (now != QpState::reset && now != QpState::error) return;
  forget_peers();
  control_.reset();
  records_.reset();
  engine().timers().cancel(expiry_);
  engine().timers().cancel(paced_);
}

/// Receives and records in the order in which they were done: over RD that is the order of posting.
bool DatagramQueuePair::report() {
  const bool sends_reported = report_sends();
  if (records_.any_done() && !report_records()) return false;
  return report_receives(receives().completed()) && sends_reported;
}

/// With the receives that were done before.
bool DatagramQueuePair::report_records() {
  // guard(completion-order-ud): *first => receives().completed()
  while (const std::optional<uint64_t> first = records_.receives_first())
    if (!report_receives(*first) || !records_.report(recv_cq())) return false;
  return true;
}

// --- Receiving.

size_t DatagramQueuePair::receive(Time now) {
  llp::ReceiveBatch& batch = engine().buffers().receive_batch();
  const size_t count = link_->receive(batch);
  if (count == 0) return 0;
  for (const llp::IncomingDatagram& datagram : batch.datagrams()) handle(datagram, now);
  count_overflow(now);
  after_receive(now);
  return count;
}

void DatagramQueuePair::handle(const llp::IncomingDatagram& datagram, Time now) {
  counters().add(Counter::rx_datagrams);
  counters().add(Counter::rx_bytes, datagram.bytes.size());
  if (!sources_.admit(datagram.from))
    return drop(Counter::drop_filtered, datagram.from);  // guard(groups)
  const dgram::OpenedEnvelope envelope = dgram::Envelope::open(datagram.bytes);
  if (!envelope.valid) return drop(envelope.drop_reason, datagram.from);         // guard(datagram)
  if (state() != QpState::rts) return drop(Counter::drop_state, datagram.from);  // guard(state)
  // Each step that takes memory for a datagram does so before it changes anything else.
  try {
    take_datagram(envelope, datagram, now);
  } catch (const std::bad_alloc&) {
    drop(Counter::drop_no_memory, datagram.from);
  }
}

void DatagramQueuePair::after_receive(Time now) {
  batch_taken(now);
  if (!report()) engine().transmits().stall(*this);  // guard(completion): => report();
  arm_expiry();
}

/// Where a peer sent to. What came by the queue pair's own link to a group that is not known is
/// taken to be sent to the queue pair.
Address DatagramQueuePair::destination_of(uint32_t group, uint32_t local) const {
  if (group != 0)  // guard(route-header): condition => false
    if (const std::optional<Address> joined = groups_.address_of(group)) return *joined;
  // guard(route-header): address_of(local) => local_address()
  return link_->address_of(local);
}

void DatagramQueuePair::report_verdict(const Verdict& verdict,
                                       const rdmap::DatagramSegment& segment,
                                       const llp::IncomingDatagram& datagram, Time now) {
  if (verdict.drop || verdict.fault || log::shows(LogLevel::trace)) [[unlikely]]
    tell_verdict(verdict, segment, datagram, now);
}

/// Apart from segments without anything to tell, which would save registers for it.
void DatagramQueuePair::tell_verdict(const Verdict& verdict, const rdmap::DatagramSegment& segment,
                                     const llp::IncomingDatagram& datagram, Time now) {
  if (verdict.drop)
    drop(*verdict.drop, datagram.from);
  else if (segment.last && log::shows(LogLevel::trace))
    message_log::received(subject(), segment.opcode,
                          segment.message_offset + segment.payload.size(), &datagram.from);
  // guard(errors): datagram.bytes.size() => 65507
  if (verdict.fault)
    errors_.found(datagram.sender(), segment, *verdict.fault, datagram.bytes.size(),
                  !datagram.group, now, verdict.told);  // guard(errors): !datagram.group => true
}

void DatagramQueuePair::count_overflow(Time now) {
  const uint64_t overflowed = link_->overflowed();
  if (overflowed == overflowed_) return;
  counters().add(Counter::rx_overflow, overflowed - overflowed_);
  network_.overflowed(overflowed - overflowed_, now);
  overflowed_ = overflowed;
}

// --- Timers.

/// One timer for everything that ends by itself: it is never later than the first of these, and
/// looks again when it fires.
void DatagramQueuePair::arm_expiry() {
  const Time due = next_expiry();
  if (due == Time::max() || (expiry_.armed() && expiry_.deadline() <= due)) return;
  engine().timers().arm(expiry_, due);
}

void DatagramQueuePair::on_expiry(Time now) {
  expire(now);
  if (!report()) engine().transmits().stall(*this);
  arm_expiry();
}

// --- Sending.

inline Served DatagramQueuePair::send(Time now) {
  Served served;
  if (link_is_full())
    served.pending = Pending::writable;
  else
    served = sender_.run(engine().buffers().burst(), *link_, counters(), now);
  arm_expiry();
  if (sender_.paced() && served.pending == Pending::nothing)
    engine().timers().arm(paced_, sender_.ready_at());
  return served;
}

Served DatagramQueuePair::transmit(Time now) {
  Served served;
  if (state() == QpState::rts)
    served = send(now);
  else
    flush_withheld();
  if (report()) return served;
  if (served.pending == Pending::nothing) served.pending = Pending::stalled;
  if (served.pending == Pending::writable)
    engine().transmits().stall(*this);  // whichever comes first
  return served;
}

void DatagramQueuePair::on_paced(Time) { engine().transmits().activate(*this); }

void DatagramQueuePair::set_q_key(uint32_t q_key) {
  engine().exclusively([&] {
    const QpState now = state();
    if (now != QpState::reset && now != QpState::init)  // guard(posting): condition => false
      throw Error(make_error_code(Errc::invalid_state),
                  "A Q_Key is changed in reset or init, and this queue pair is in " +
                      std::string(to_string(now)));
    q_key_ = q_key;
    q_key_changed();
  });
}

void DatagramQueuePair::set_max_rate(uint64_t bytes_per_second) {
  engine().exclusively([&] {
    max_rate_ = bytes_per_second;
    sender_.set_max_rate(bytes_per_second, engine().clock().now());
    engine().transmits().activate(*this);
  });
}

// --- What applications ask.

void DatagramQueuePair::set_sources(std::span<const SourceFilter> sources) {
  SourceFilters filters(sources);
  engine().exclusively([&] { sources_ = std::move(filters); });
}

std::optional<DatagramError> DatagramQueuePair::poll_error() {
  return engine().exclusively([&] { return errors_.poll(); });
}

std::vector<OpenRecord> DatagramQueuePair::open_records() {
  return engine().exclusively([&] { return records_.open(); });
}

uint32_t DatagramQueuePair::max_datagram_payload(const Address& destination) {
  if (!can_reach(address_, destination.with_port(1)))
    throw Error(make_error_code(Errc::invalid_destination),
                "Nothing can be sent from " + address_.host() + " to " + destination.host() +
                    ": give an address of the same family");
  return payload_towards(destination);
}

uint32_t DatagramQueuePair::payload_towards(const Address& to) {
  const size_t path = engine().exclusively([&] { return link_->max_datagram(to); });
  const size_t body =
      dgram::Envelope::max_body(segment_ == 0 ? path : std::min<size_t>(segment_, path));
  const size_t headers = rdmap::segment_header_bytes(rdmap::Opcode::send, false) +
                         (type() == QpType::rd ? dgram::kRdHeaderBytes : 0);
  return static_cast<uint32_t>(body - std::min(body, headers));
}

QueuePairAttributes DatagramQueuePair::query() {
  QueuePairAttributes attributes = QueuePair::query();
  attributes.local_address = address_;
  attributes.max_datagram_payload = payload_towards(neighbours(address_));
  engine().exclusively([&] {
    attributes.q_key = q_key_;
    attributes.max_rate = max_rate_;
  });
  return attributes;
}

}  // namespace diwarp::rnic
