// SPDX-License-Identifier: Apache-2.0
#include "stack/unix/unix_connector.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "diwarp/error.h"
#include "stack/unix/unix_name.h"
#include "stack/unix/unix_stream.h"

namespace diwarp::test {

namespace {

std::error_code last_error() { return {errno, std::system_category()}; }

Address with_host(const Address& source, const Address& peer) {
  return source.is_any() ? Address::loopback(peer.family(), source.port()) : source;
}

/// Unix-domain streams are connected, or refused, at once.
class PendingUnix final : public llp::PendingConnection {
 public:
  PendingUnix(UniqueFd fd, const Address& local, const Address& peer)
      : fd_(std::move(fd)), local_(local), peer_(peer) {
    UnixName to = unix_name(SOCK_STREAM, peer);
    if (::connect(fd_.get(), to.get(), to.length) != 0) error_ = last_error();
  }

  llp::ConnectResult finish() override {
    if (error_) return {.error = error_};
    return {.stream = std::make_unique<UnixStream>(std::move(fd_), local_, peer_)};
  }
  int descriptor() const override { return fd_.get(); }

 private:
  UniqueFd fd_;
  const Address local_;
  const Address peer_;
  std::error_code error_;
};

class UnixListener final : public llp::StreamListener {
 public:
  UnixListener(UniqueFd fd, const Address& local) : fd_(std::move(fd)), local_(local) {}

  llp::AcceptResult accept() override {
    UnixName peer;
    peer.length = sizeof peer.name;
    UniqueFd fd(::accept4(fd_.get(), peer.get(), &peer.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return {.status = status_of(errno)};
    return {.status = llp::AcceptStatus::accepted,
            .stream = std::make_unique<UnixStream>(std::move(fd), local_, address_of(peer))};
  }
  /// Keeps no descriptor for that.
  llp::Refusal refuse_next() override { return llp::Refusal::no_descriptor; }
  Address local_address() const override { return local_; }
  int descriptor() const override { return fd_.get(); }

 private:
  llp::AcceptStatus status_of(int error) const {
    if (error == EAGAIN) return llp::AcceptStatus::none;
    if (error == ENOMEM || error == ENOBUFS) return llp::AcceptStatus::no_memory;
    if (error != EMFILE && error != ENFILE) return llp::AcceptStatus::broken;
    return connection_waits() ? llp::AcceptStatus::no_descriptor : llp::AcceptStatus::none;
  }
  /// Without descriptors accept4() fails, whether a connection waits or not.
  bool connection_waits() const {
    pollfd watched{fd_.get(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
  }

  const UniqueFd fd_;
  const Address local_;
};

}  // namespace

std::unique_ptr<llp::PendingConnection> UnixConnector::connect(const Address& source,
                                                               const Address& peer,
                                                               std::error_code& error) {
  UniqueFd fd = open_unix(SOCK_STREAM);
  const Address local = bind_unix(fd.get(), SOCK_STREAM, with_host(source, peer));
  if (local.port() != 0) return std::make_unique<PendingUnix>(std::move(fd), local, peer);
  error = last_error();
  return nullptr;
}

std::unique_ptr<llp::StreamListener> UnixConnector::listen(const Address& local,
                                                           const llp::ListenSettings& settings) {
  UniqueFd fd = open_unix(SOCK_STREAM);
  const Address bound = bind_unix(fd.get(), SOCK_STREAM, local);
  if (bound.port() == 0 && errno == EADDRINUSE)
    throw Error(make_error_code(Errc::address_in_use), local.to_string() + " is in use");
  if (bound.port() == 0 || ::listen(fd.get(), std::max(settings.backlog, 1)) != 0)
    throw Error(last_error(), "Cannot listen on " + local.to_string());
  return std::make_unique<UnixListener>(std::move(fd), bound);
}

std::unique_ptr<llp::Stream> UnixConnector::adopt(int connected_descriptor) {
  const Address peer = unix_peer_address(connected_descriptor);
  if (peer.port() == 0)
    throw Error(make_error_code(Errc::invalid_argument),
                "Descriptor " + std::to_string(connected_descriptor) +
                    " is no connected Unix-domain stream of this backend");
  ::fcntl(connected_descriptor, F_SETFL, ::fcntl(connected_descriptor, F_GETFL) | O_NONBLOCK);
  return std::make_unique<UnixStream>(UniqueFd(connected_descriptor),
                                      unix_local_address(connected_descriptor), peer);
}

std::error_code UnixConnector::find_source(const Address& own, const Address& peer,
                                           Address& source) {
  source = with_host(own, peer).with_port(0);
  return {};
}

}  // namespace diwarp::test
