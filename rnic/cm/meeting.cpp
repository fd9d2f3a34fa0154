// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/meeting.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <string>
#include <utility>

#include "base/byte_order.h"
#include "base/log.h"
#include "base/mapped_address.h"
#include "diwarp/error.h"
#include "rnic/cm/blocking_startup.h"
#include "rnic/cm/startup_answers.h"
#include "rnic/cm/startup_checks.h"
#include "rnic/context/peer_timeouts.h"

namespace diwarp::rnic {

namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr uint32_t kMagic = 0x64777131;  // "dwq1"

[[noreturn]] void refuse(Errc code, const std::string& message) {
  throw Error(make_error_code(code), message);
}

/// Where the connection comes from, on this side: as the peer knows it.
Address source_of(Control& control, const NamedPeer& peer) {
  const Address own = control.device().address();
  const bool chosen = !peer.source.is_any();
  const bool may_have = own == peer.source.with_port(0) ||
                        (own.is_any() && (own.family() == AddressFamily::ipv6 ||
                                          peer.source.family() == AddressFamily::ipv4));
  if (chosen && !may_have)
    refuse(Errc::invalid_argument,
           "A device on " + own.host() + " has no address " + peer.source.host());
  const Address from = chosen ? peer.source.with_port(0) : own;
  check_peer(from, peer.address);
  if (!from.is_any()) return from;
  Address source;
  if (const std::error_code error = control.connector().find_source(from, peer.address, source))
    throw Error(error, peer.address.to_string() + " cannot be reached");
  return source;
}

/// Whether the queue pair at `own` connects, and does not accept.
bool connects(uint32_t number, const Address& own, const NamedPeer& peer) {
  if (number != peer.number) return number < peer.number;
  const Address theirs = peer.address.with_port(0);
  if (own == theirs)
    refuse(Errc::invalid_argument,
           "Two queue pairs on one address that name each other need different numbers: see "
           "QueuePairInit::number");
  return std::ranges::lexicographical_compare(own.bytes(), theirs.bytes());
}

/// With addresses as sockets tell them: not mapped.
NamedPeer checked(NamedPeer peer) {
  if (peer.number < kLeastRcNumber || peer.number > kMaxRcNumber)
    refuse(Errc::invalid_argument,
           "The number of an RC queue pair is from " + std::to_string(kLeastRcNumber) + " to " +
               std::to_string(kMaxRcNumber) + ", not " + std::to_string(peer.number));
  check_peer_wait(peer.timeout);
  check_depths(peer.ord, peer.ird);
  check_timeouts({peer.keep_alive, peer.user_timeout});
  peer.address = unmapped(peer.address);  // guard(meeting)
  peer.source = unmapped(peer.source);    // guard(meeting)
  return peer;
}

}  // namespace

// --- Names.

std::array<std::byte, MeetingNames::kBytes> MeetingNames::encode() const {
  std::array<std::byte, kBytes> bytes;
  store_be(bytes.data(), kMagic);
  store_be(bytes.data() + 4, from);
  store_be(bytes.data() + 8, to);
  return bytes;
}

std::optional<MeetingNames> MeetingNames::parse(std::span<const std::byte> data) {
  if (data.size() != kBytes || load_be<uint32_t>(data.data()) != kMagic) return std::nullopt;
  return MeetingNames{.from = load_be<uint32_t>(data.data() + 4),
                      .to = load_be<uint32_t>(data.data() + 8)};
}

// --- One meeting.

Meeting::Meeting(Control& control, uint32_t number, const NamedPeer& peer, MeetingParty& party)
    : control_(control),
      number_(number),
      peer_(checked(peer)),
      source_(source_of(control, peer_)),
      connects_(connects(number, source_, peer_)),
      party_(&party),
      retry_timer_(control.context()),
      deadline_timer_(control.context()) {}

void Meeting::begin() {
  boost::asio::post(control_.context(), [self = shared_from_this()] { self->start(); });
}

void Meeting::limit(Duration timeout) {
  boost::asio::post(control_.context(), [self = shared_from_this(), timeout] {
    if (!self->over_) self->set_deadline(timeout);
  });
}

/// What goes on on the control path finds out by itself.
void Meeting::cancel() noexcept {
  over_ = true;
  party_ = nullptr;
  try {
    boost::asio::post(control_.context(), [self = shared_from_this()] { self->end(); });
  } catch (const std::exception&) {
    // It ends with its time.
  }
}

Duration Meeting::left() const {
  return std::chrono::duration_cast<Duration>(deadline_ - SteadyTime::now());
}

void Meeting::start() {
  if (over_) return;
  set_deadline(peer_.timeout);
  if (connects_)
    try_once();
  else
    control_.meetings().add(number_, weak_from_this());
}

/// In place of the one before.
void Meeting::set_deadline(Duration timeout) {
  const Duration patience = bounded_timeout(timeout);
  deadline_ = SteadyTime::now() + patience;
  deadline_timer_.expires_after(patience);
  deadline_timer_.async_wait([self = shared_from_this()](const AsioError& error) {
    if (!error && self->left() <= Duration::zero()) self->miss();
  });
}

void Meeting::try_once() {
  const Duration patience = std::min(left(), kMeetingAttempt);
  if (over_ || patience <= Duration::zero()) return;
  const MeetingNames names{.from = number_, .to = peer_.number};
  connecting_ = std::make_shared<Connecting>(control_, source_, peer_.address,
                                             ConnectOptions{.private_data = names.encode(),
                                                            .timeout = patience,
                                                            .crc = peer_.crc,
                                                            .fallback = false,
                                                            .ord = peer_.ord,
                                                            .ird = peer_.ird,
                                                            .keep_alive = peer_.keep_alive,
                                                            .user_timeout = peer_.user_timeout});
  connecting_->begin([self = shared_from_this()](ConnectOutcome outcome) {
    self->on_outcome(std::move(outcome));
  });
}

void Meeting::on_outcome(ConnectOutcome outcome) {
  connecting_.reset();
  if (over_) return;
  NegotiatedConnection connection;
  if (!outcome.error) connection.stream = unbroken(std::move(outcome.stream));
  if (!connection.stream) {
    trouble_ = std::move(outcome.message);
    return retry_later();
  }
  connection.parameters = outcome.parameters;
  connection.timeouts = outcome.timeouts;
  connection.leftover = std::move(outcome.leftover);
  meet(std::move(connection));
}

void Meeting::retry_later() {
  retry_timer_.expires_after(retry_);
  retry_ = std::min(2 * retry_, kLongestMeetingRetry);
  retry_timer_.async_wait([self = shared_from_this()](const AsioError& error) {
    if (!error) self->try_once();
  });
}

bool Meeting::expects(const MeetingNames& names, const Address& from) const {
  // guard(meeting): names.from == peer_.number => true
  // guard(meeting): from.with_port(0) == peer_.address.with_port(0) => true
  return !over_ && names.from == peer_.number && from.with_port(0) == peer_.address.with_port(0);
}

/// A peer that gives up meanwhile asks again.
void Meeting::accept(IncomingRequest request) {
  NegotiatedConnection connection;
  try {
    connection = accept_connection(std::move(request), {.crc = peer_.crc,
                                                        .ord = peer_.ord,
                                                        .ird = peer_.ird,
                                                        .keep_alive = peer_.keep_alive,
                                                        .user_timeout = peer_.user_timeout});
  } catch (const Error&) {
    return;
  }
  meet(std::move(connection));
}

void Meeting::meet(NegotiatedConnection connection) {
  over_ = true;
  end();
  control_.with_baton([&] {
    MeetingParty* const party = std::exchange(party_, nullptr);
    if (party == nullptr) return;
    try {
      party->on_met(std::move(connection));
    } catch (const std::exception&) {
      party->on_missed(make_error_code(Errc::no_resources));
    }
  });
}

void Meeting::miss() {
  if (over_.exchange(true)) return;
  end();
  log::tell(LogLevel::info, {.device = control_.device().name()}, [this] {
    return "queue pair " + std::to_string(peer_.number) + " at " + peer_.address.to_string() +
           ", which was named to queue pair " + std::to_string(number_) + ", did not come in time" +
           (trouble_.empty() ? "" : ". The last attempt: " + trouble_);
  });
  control_.with_baton([this] {
    if (MeetingParty* const party = std::exchange(party_, nullptr))
      party->on_missed(make_error_code(Errc::timed_out));
  });
}

/// Nothing goes on on the control path any more.
void Meeting::end() {
  control_.meetings().remove(number_, *this);
  retry_timer_.cancel();
  deadline_timer_.cancel();
  if (const auto connecting = std::exchange(connecting_, nullptr)) connecting->cancel();
}

// --- All of a device.

void Meetings::remove(uint32_t number, const Meeting& meeting) {
  const auto found = all_.find(number);
  if (found == all_.end()) return;
  const std::shared_ptr<Meeting> known = found->second.lock();
  if (!known || known.get() == &meeting) all_.erase(found);
}

void Meetings::take(IncomingRequest& request) {
  const auto names = MeetingNames::parse(request.private_data);
  if (!names) return;
  const auto found = all_.find(names->to);
  const std::shared_ptr<Meeting> meeting = found == all_.end() ? nullptr : found->second.lock();
  if (meeting && meeting->expects(*names, request.stream->peer_address()))
    meeting->accept(std::move(request));
}

}  // namespace diwarp::rnic
