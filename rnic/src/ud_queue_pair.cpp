// SPDX-License-Identifier: Apache-2.0
#include "rnic/ud_queue_pair.h"

#include <string>

#include "base/random.h"
#include "diwarp/error.h"
#include "rdmap/datagram.h"

namespace diwarp::rnic {

namespace {

constexpr uint32_t kMinSegment = 64;  // headers, CRC and some payload

const DatagramOptions& checked(const DatagramOptions& options) {
  const auto refuse = [](const std::string& sentence) {
    throw Error(make_error_code(Errc::invalid_argument), sentence);
  };
  if (options.segment != 0 && (options.segment < kMinSegment || options.segment > llp::kMaxDatagram))
    refuse("A segment is from 64 to 65507 bytes, or 0 for what the path MTU carries");
  if (options.max_open_messages == 0 || options.max_open_per_source == 0)
    refuse("At least one message must be allowed to be open: see max_open_messages");
  if (options.max_sources == 0) refuse("max_sources must be at least 1");
  if (options.message_timeout <= Duration::zero()) refuse("message_timeout must be above zero");
  return options;
}

}  // namespace

UdQueuePair::UdQueuePair(std::shared_ptr<ProtectionDomain> domain, const QueuePairInit& init)
    : QueuePair(std::move(domain), init),
      link_(device()->open_datagram_link(checked(init.datagram))),
      address_(link_->local_address()),
      options_(init.datagram),
      max_rate_(init.datagram.max_rate),
      transmit_(init.datagram.segment, init.datagram.max_rate),
      receive_(*this, device()->engine().counters(), init.datagram) {
  engine().exclusively([this] {
    set_state(QpState::rts);
    on_state(QpState::rts);
    engine().attach(*this, link_->descriptor());
  });
  if (link_->descriptor() < 0) link_->on_ready([engine = &engine()] { engine->wake(); });
}

UdQueuePair::~UdQueuePair() {
  if (link_->descriptor() < 0) link_->on_ready({});
  engine().exclusively([this] {
    engine().timers().cancel(expiry_);
    engine().timers().cancel(paced_);
    receive_.reset();
    retire();
  });
}

std::error_code UdQueuePair::check_send(const SendWorkRequest& request) const noexcept {
  if (!facts_of(request.opcode).on_datagrams) return Errc::unsupported_operation;
  const Address& to = request.destination;
  const bool dual_stack = address_.family() == AddressFamily::ipv6 && address_.is_any();
  const bool reachable = to.family() == address_.family() || dual_stack;
  if (to.port() == 0 || to.is_any() || !reachable) return Errc::invalid_destination;
  return {};
}

void UdQueuePair::on_state(QpState now) {
  if (now == QpState::rts) transmit_.start(system_random_u32(), system_random_u32());
  if (now == QpState::reset || now == QpState::error) {
    receive_.reset();
    engine().timers().cancel(expiry_);
    engine().timers().cancel(paced_);
  }
}

size_t UdQueuePair::receive(Time now) {
  llp::ReceiveBatch& batch = engine().receive_batch();
  const size_t count = link_->receive(batch);
  if (count == 0) return 0;
  for (const llp::IncomingDatagram& datagram : batch.datagrams()) receive_.handle(datagram, now);
  count_overflow();
  if (!report()) engine().stall(*this);
  arm_expiry();
  return count;
}

void UdQueuePair::count_overflow() {
  const uint64_t overflowed = link_->overflowed();
  if (overflowed == overflowed_) return;
  counters().add(Counter::rx_overflow, overflowed - overflowed_);
  overflowed_ = overflowed;
}

/// One timer for all open messages: it is armed for the oldest and looks again when it fires.
void UdQueuePair::arm_expiry() {
  if (expiry_.armed() || receive_.open_messages() == 0) return;
  engine().timers().arm(expiry_, *receive_.next_expiry());
}

void UdQueuePair::on_expiry(Time now) {
  receive_.expire(now);
  arm_expiry();
}

Served UdQueuePair::transmit(Time now) {
  Served served;
  if (link_is_full())
    served.pending = Pending::writable;
  else if (state() == QpState::rts)
    served = transmit_.run({sends_, *link_, engine().burst(), counters(), *this}, now);
  // Without a rate, a send that is there now was posted meanwhile, and its poster tells the engine.
  const bool paced = transmit_.paced() && sends_.pending() != nullptr;
  if (paced && served.pending == Pending::nothing && state() == QpState::rts)
    engine().timers().arm(paced_, transmit_.ready_at());
  if (report()) return served;
  if (served.pending == Pending::nothing) served.pending = Pending::stalled;
  if (served.pending == Pending::writable) engine().stall(*this);  // whichever comes first
  return served;
}

void UdQueuePair::on_paced(Time) { engine().activate(*this); }

void UdQueuePair::set_max_rate(uint64_t bytes_per_second) {
  engine().exclusively([&] {
    max_rate_ = bytes_per_second;
    transmit_.set_max_rate(bytes_per_second, engine().clock().now());
    engine().activate(*this);
  });
}

QueuePairAttributes UdQueuePair::query() {
  QueuePairAttributes attributes = QueuePair::query();
  attributes.local_address = address_;
  attributes.q_key = options_.q_key;
  engine().exclusively([&] { attributes.max_rate = max_rate_; });
  return attributes;
}

}  // namespace diwarp::rnic
