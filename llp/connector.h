// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <system_error>

#include "diwarp/address.h"
#include "llp/stream.h"

namespace diwarp::llp {

/// The state of a connection that was begun: a stream, or an error; neither while it is in
/// progress.
struct ConnectResult {
  std::unique_ptr<Stream> stream = {};
  std::error_code error = {};
};

/// A connection that is being made; given up when it is destroyed. Non-blocking, one thread at a
/// time.
class PendingConnection {
 public:
  virtual ~PendingConnection() = default;

  /// Has a result, once, when descriptor() has polled writable; if not, it is asked again then.
  virtual ConnectResult finish() = 0;
  /// The stream that comes of it may have the same one.
  virtual int descriptor() const = 0;
};

enum class AcceptStatus : uint8_t {
  accepted,       ///< there is a stream
  none,           ///< no connection waits
  broken,         ///< the connection that waited is gone; there may be others
  no_descriptor,  ///< one waits, and the process or the system has no descriptor for it
  no_memory,      ///< or the system has no memory
};

struct AcceptResult {
  AcceptStatus status = AcceptStatus::none;
  std::unique_ptr<Stream> stream = {};
};

enum class Refusal : uint8_t {
  refused,        ///< the connection was reset
  nobody,         ///< none is waiting
  no_descriptor,  ///< not even that can be done now
};

/// Where peers connect. Non-blocking, one thread at a time. Destroyed: nobody can connect any more.
class StreamListener {
 public:
  virtual ~StreamListener() = default;

  virtual AcceptResult accept() = 0;
  /// Breaks the next connection off, by means kept for the time when accept() has no descriptor.
  virtual Refusal refuse_next() = 0;

  virtual Address local_address() const = 0;
  /// Polls readable while a connection waits.
  virtual int descriptor() const = 0;
};

struct ListenSettings {
  int backlog = 1;         ///< how many connections may wait to be accepted, at least
  bool ipv6_only = false;  ///< "::" does not serve IPv4
};

/// Makes streams. They come with a descriptor that polls readable and writable, so that bytes can
/// be exchanged before an engine has them: serve() tells how it is to have them. Any thread.
class Connector {
 public:
  virtual ~Connector() = default;

  /// From `source` to `peer`; where the source is "any", or its port 0, the system chooses. Null,
  /// and `error`, where this host has no means to begin. The answer of the peer or the network
  /// comes with finish().
  virtual std::unique_ptr<PendingConnection> connect(const Address& source, const Address& peer,
                                                     std::error_code& error) = 0;

  /// Port 0 takes a free one. Throws Error(address_in_use), or the system's errno.
  virtual std::unique_ptr<StreamListener> listen(const Address& local,
                                                 const ListenSettings& settings) = 0;

  /// Takes a connected descriptor over, whatever passed over it before. Throws
  /// Error(invalid_argument), and leaves it as it is, when it is none of this connector's kind.
  virtual std::unique_ptr<Stream> adopt(int connected_descriptor) = 0;

  /// The local address (port 0) from which a device on `own` reaches `peer`, without a connection;
  /// or an error.
  virtual std::error_code find_source(const Address& own, const Address& peer, Address& source) = 0;

  /// A stream for the engine to serve from now on, in the way in which the device moves bytes. A
  /// stream that gives no descriptor up (Stream::release) comes back as it is.
  virtual std::unique_ptr<Stream> serve(std::unique_ptr<Stream> stream) { return stream; }
};

}  // namespace diwarp::llp
