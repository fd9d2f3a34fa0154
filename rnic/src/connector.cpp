// SPDX-License-Identifier: Apache-2.0
#include "rnic/connector.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <mutex>
#include <optional>

#include "diwarp/error.h"
#include "llp/tcp.h"
#include "rnic/control.h"
#include "rnic/device.h"
#include "rnic/waiting.h"
#include "tcp_socket.h"

namespace diwarp::rnic {

namespace {

constexpr Duration kLongestTimeout = std::chrono::hours(24 * 365);

/// How an operation ended: with a connected socket and the peer's reply, or with an error.
struct Outcome {
  std::error_code error;
  std::string sentence;
  UniqueFd socket;
  mpa::Agreement agreement;
  std::vector<std::byte> private_data;
  std::vector<std::byte> leftover;
};

/// One connect(), on the control path. Each handler keeps it alive.
class ConnectOperation : public std::enable_shared_from_this<ConnectOperation> {
 public:
  ConnectOperation(Control& control, const Address& local, const Address& peer,
                   const ConnectOptions& options)
      : control_(control),
        local_(local),
        peer_(peer),
        timeout_(std::clamp(options.timeout, Duration::zero(), kLongestTimeout)),
        crc_(options.crc),
        request_(mpa::kStartupHeaderBytes + options.private_data.size()),
        socket_(control.context()),
        timer_(control.context()) {
    mpa::encode({.crc = options.crc, .private_data = options.private_data}, request_);
  }

  // The caller's thread.
  bool done() const {
    const std::lock_guard lock(mutex_);
    return outcome_.has_value();
  }
  Outcome take() {
    const std::lock_guard lock(mutex_);
    return std::move(*outcome_);
  }
  Sleeper& sleeper() { return sleeper_; }

  // The control path.
  void begin();

 private:
  UniqueFd open_socket() const;
  void on_timeout(const AsioError& error);
  void on_connected(const AsioError& error);
  void on_written(const AsioError& error);
  void read();
  void on_read(const AsioError& error, size_t bytes);
  void judge(const mpa::ParsedStartup& reply);
  void fail(std::error_code error, const std::string& sentence);
  void lose();
  void refuse(const std::string& reason);
  void finish(Outcome outcome);

  Control& control_;
  const Address local_;
  const Address peer_;
  const Duration timeout_;
  const bool crc_;
  std::vector<std::byte> request_;
  std::array<std::byte, 1024> reply_;  // has room for the longest frame
  size_t received_ = 0;
  Tcp::socket socket_;
  boost::asio::steady_timer timer_;
  bool requested_ = false;  // the MPA request is out
  bool finished_ = false;

  mutable std::mutex mutex_;  // guards outcome_
  std::optional<Outcome> outcome_;
  Sleeper sleeper_;
};

void ConnectOperation::begin() {
  timer_.expires_after(timeout_);
  timer_.async_wait(
      [self = shared_from_this()](const AsioError& error) { self->on_timeout(error); });
  UniqueFd fd = open_socket();
  if (!fd)
    return fail(system_error(errno), "No socket could be bound to " + local_.host() +
                                         ": is it still an address of this host, and are there "
                                         "descriptors left (ulimit -n)?");
  socket_ = to_asio(control_.context(), std::move(fd));
  socket_.async_connect(to_endpoint(peer_), [self = shared_from_this()](const AsioError& error) {
    self->on_connected(error);
  });
}

/// Bound to the device's address. Empty, and errno tells, where that fails.
UniqueFd ConnectOperation::open_socket() const {
  UniqueFd fd = open_tcp(peer_.family());
  if (!fd || local_.is_any()) return fd;
  // The kernel then chooses the port in connect(): one port serves many peers.
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  sockaddr_storage storage;
  const socklen_t length = local_.with_port(0).to_sockaddr(storage);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0) return fd;
  const int error = errno;
  fd.reset();
  errno = error;
  return fd;
}

void ConnectOperation::on_timeout(const AsioError& error) {
  if (error || finished_) return;
  if (requested_) control_.counters().add_shared(Counter::mpa_timeouts);
  fail(make_error_code(Errc::timed_out),
       peer_.to_string() + (requested_ ? " took the connection but sent no MPA reply in time: does "
                                         "an iWARP listener serve that port, and does it answer?"
                                       : " did not answer in time: check the address, and that no "
                                         "firewall swallows the packets"));
}

void ConnectOperation::on_connected(const AsioError& error) {
  if (finished_) return;
  if (error == boost::asio::error::connection_reset) return lose();
  if (error)
    return fail(system_error(error.value()),
                "No connection to " + peer_.to_string() +
                    ": check the address and the port, and that a listener is running there");
  requested_ = true;
  boost::asio::async_write(
      socket_, boost::asio::buffer(request_.data(), request_.size()),
      [self = shared_from_this()](const AsioError& failed, size_t) { self->on_written(failed); });
}

void ConnectOperation::on_written(const AsioError& error) {
  if (finished_) return;
  error ? lose() : read();
}

void ConnectOperation::read() {
  const auto room = std::span(reply_).subspan(received_);
  socket_.async_read_some(boost::asio::buffer(room.data(), room.size()),
                          [self = shared_from_this()](const AsioError& error, size_t bytes) {
                            self->on_read(error, bytes);
                          });
}

void ConnectOperation::on_read(const AsioError& error, size_t bytes) {
  if (finished_) return;
  if (error) return lose();
  received_ += bytes;
  const mpa::ParsedStartup reply =
      mpa::parse_startup(std::span(reply_).first(received_), mpa::FrameKind::reply);
  switch (reply.status) {
    case mpa::StartupStatus::incomplete:
      return read();
    case mpa::StartupStatus::bad_key:
      return refuse("does not speak MPA: check the port");
    case mpa::StartupStatus::bad_length:
      return refuse("announces more than 512 bytes of private data, which MPA does not allow");
    case mpa::StartupStatus::ok:
      return judge(reply);
  }
}

void ConnectOperation::judge(const mpa::ParsedStartup& reply) {
  const mpa::AgreementResult result = mpa::judge_reply(reply.frame, crc_);
  Outcome outcome;
  outcome.private_data.assign(reply.frame.private_data.begin(), reply.frame.private_data.end());
  switch (result.fault) {
    case mpa::AgreementFault::none:
      break;
    case mpa::AgreementFault::revision:
      return refuse("speaks another revision of MPA than 1");
    case mpa::AgreementFault::markers:
      return refuse("wants MPA markers: switch them off there, they are not supported here");
    case mpa::AgreementFault::rejected:
      control_.counters().add_shared(Counter::mpa_rejects);
      outcome.error = make_error_code(Errc::rejected);
      outcome.sentence =
          peer_.to_string() + " rejected the connection; its private data may say why";
      return finish(std::move(outcome));
  }
  const auto rest = std::span(reply_).first(received_).subspan(reply.consumed);
  outcome.leftover.assign(rest.begin(), rest.end());
  outcome.agreement = result.agreement;
  outcome.socket = release(socket_);
  finish(std::move(outcome));
}

/// The peer is not what this side can talk to.
void ConnectOperation::refuse(const std::string& reason) {
  control_.counters().add_shared(Counter::mpa_bad_requests);
  fail(make_error_code(Errc::protocol_error), peer_.to_string() + " " + reason);
}

void ConnectOperation::lose() {
  fail(make_error_code(Errc::connection_lost),
       peer_.to_string() +
           " closed the connection before it sent an MPA reply: does an iWARP "
           "listener serve that port, and is it still running?");
}

void ConnectOperation::fail(std::error_code error, const std::string& sentence) {
  Outcome outcome;
  outcome.error = error;
  outcome.sentence = sentence;
  finish(std::move(outcome));
}

void ConnectOperation::finish(Outcome outcome) {
  finished_ = true;
  timer_.cancel();
  AsioError ignored;
  socket_.close(ignored);
  {
    const std::lock_guard lock(mutex_);
    outcome_ = std::move(outcome);
  }
  sleeper_.wake();
}

void check_peer(const Address& local, const Address& peer) {
  const bool dual_stack = local.is_any() && local.family() == AddressFamily::ipv6;
  const bool reachable = local.family() == peer.family() || dual_stack;
  if (peer.port() != 0 && !peer.is_any() && reachable) return;
  throw Error(make_error_code(Errc::invalid_destination),
              "A device on " + local.host() + " cannot connect to " + peer.to_string() +
                  ": give an address of the same family, and a port");
}

}  // namespace

Established open_connection(Device& device, const Address& peer, const ConnectOptions& options) {
  check_private_data(options.private_data);
  check_peer(device.address(), peer);
  Control& control = device.control();
  const auto operation =
      std::make_shared<ConnectOperation>(control, device.address(), peer, options);
  boost::asio::post(control.context(), [operation] { operation->begin(); });
  while (!operation->done()) rest(device.engine(), operation->sleeper(), kLongestRest);

  Outcome outcome = operation->take();
  if (outcome.error == make_error_code(Errc::rejected))
    throw RejectedError(outcome.sentence, std::move(outcome.private_data));
  if (outcome.error) throw Error(outcome.error, outcome.sentence);
  Established connection;
  connection.stream = adopt_stream(std::move(outcome.socket));
  if (!connection.stream)
    throw Error(make_error_code(Errc::connection_lost),
                peer.to_string() + " accepted the connection and broke it at once");
  connection.agreement = outcome.agreement;
  connection.leftover = std::move(outcome.leftover);
  connection.private_data = std::move(outcome.private_data);
  return connection;
}

}  // namespace diwarp::rnic
