// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.h"
#include "llp/stream.h"

namespace diwarp::test {

/// A connected Unix-domain stream. Such a socket knows no resets: abort() sends a byte that carries
/// a descriptor, which nothing else does.
class UnixStream final : public llp::Stream {
 public:
  UnixStream(UniqueFd connected, const Address& local, const Address& peer)
      : fd_(std::move(connected)), local_(local), peer_(peer) {}

  llp::IoResult send(std::span<const ConstBytes> pieces) override;
  llp::IoResult receive(Bytes buffer) override;
  bool leave_engine() override { return static_cast<bool>(fd_); }
  void shutdown_send() override;
  int error() override { return broken_; }
  void abort() override;
  size_t maximum_segment() const override { return size_t{32} << 10; }
  Address local_address() const override { return local_; }
  Address peer_address() const override { return peer_; }
  int descriptor() const override { return fd_.get(); }

 private:
  UniqueFd fd_;
  const Address local_;
  const Address peer_;
  int broken_ = 0;  // the errno that receive() found
};

}  // namespace diwarp::test
