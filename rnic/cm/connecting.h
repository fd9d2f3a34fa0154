// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "mpa/agreement.h"
#include "rnic/cm/control.h"
#include "rnic/cm/tcp_socket.h"
#include "rnic/context/peer_timeouts.h"

namespace diwarp::rnic {

/// How a connect ended: with a connected socket and the peer's reply, or with an error.
struct ConnectOutcome {
  std::error_code error = {};
  std::string sentence = {};
  UniqueFd socket = {};
  mpa::Agreement agreement = {};
  std::vector<std::byte> private_data = {};  ///< of the reply, or of the reject
  std::vector<std::byte> leftover = {};
  PeerTimeoutWishes timeouts = {};
};

/// One connect on the control path: TCP, then MPA's request and reply (RFC 5044 section 7.1). A
/// peer that does not take revision 2 is asked once more, in revision 1, over a new connection.
/// Each handler keeps it alive.
class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  using Done = std::function<void(ConnectOutcome)>;

  /// Throws Error(invalid_argument, invalid_destination) where the options cannot be told, or the
  /// peer not be reached.
  Connecting(Control& control, const Address& local, const Address& peer,
             const ConnectOptions& options);

  // --- On the control path.

  /// `done` is called once, unless cancel() comes before.
  void begin(Done done);
  /// The same, over this connected socket; it is not asked twice.
  void begin_on(UniqueFd socket, Done done);
  void cancel();

 private:
  void arm(Done done);
  void open();
  UniqueFd open_socket() const;
  void request();
  void on_timeout(const AsioError& error);
  void on_connected(const AsioError& error);
  void on_written(const AsioError& error);
  void read();
  void on_read(const AsioError& error, size_t bytes);
  void judge(const mpa::ParsedStartup& reply);
  void accept(const mpa::ParsedStartup& reply, const mpa::Agreement& agreement);
  void end_with_terminate(mpa::AgreementFault fault, const mpa::Agreement& agreement);
  bool retry();
  void lose();
  void refuse(const std::string& reason);
  void fail(std::error_code error, const std::string& sentence);
  void finish(ConnectOutcome outcome);

  Control& control_;
  const Address local_;
  const Address peer_;
  const Duration timeout_;
  const PeerTimeoutWishes timeouts_;  // of the connection that comes of it
  mpa::Wishes wishes_;
  bool may_retry_;
  const std::vector<std::byte> private_data_;
  std::vector<std::byte> request_;
  std::array<std::byte, 1024> reply_;  // has room for the longest frame
  size_t received_ = 0;
  Tcp::socket socket_;
  boost::asio::steady_timer timer_;
  bool requested_ = false;  // the MPA request is out
  Done done_;               // empty once over
  unsigned attempt_ = 0;    // handlers of an earlier one mean nothing
};

}  // namespace diwarp::rnic
