// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "diwarp/address.h"
#include "llp/stream.h"
#include "rnic/context/device_context.h"
#include "rnic/engine/endpoint.h"

namespace diwarp::rnic {

/// The stream of an RC queue pair, one at a time, and its place in the engine: which descriptor is
/// watched for the queue pair, and how the stream leaves. With the baton.
class RcStream {
 public:
  /// The engine asks `endpoint`, which outlives all this, for the stream's input.
  RcStream(DeviceContext& device, Endpoint& endpoint)
      : device_(device), endpoint_(endpoint), local_(device.address()) {}

  /// In service without a stream: the queue pair may have completions to report.
  void attach_none();
  /// In service with this one, whose descriptor is watched from now on. Where that throws there is
  /// none.
  void attach(std::unique_ptr<llp::Stream> stream);
  /// Lets the stream send without copying where the device asks for it. What is `copied` before,
  /// as for markers, is not sent so, whatever the stream can.
  void allow_zero_copy(bool copied);
  /// Ends the stream, in order or with a reset. Where there are final bytes, these go out before it
  /// ends in order; the wait for the end of the peer's side is then the control path's. From then
  /// on there is none.
  void close(bool in_order, std::vector<std::byte> final_bytes);

  explicit operator bool() const { return stream_ != nullptr; }
  llp::Stream& operator*() const { return *stream_; }
  llp::Stream* operator->() const { return stream_.get(); }
  /// It need not copy memory of requests.
  bool zero_copy() const { return zero_copy_; }

  /// Of the stream, or of the last one where there is none.
  const Address& local_address() const { return local_; }
  const Address& peer_address() const { return peer_; }

 private:
  void tell(std::string_view message) const;

  DeviceContext& device_;
  Endpoint& endpoint_;
  std::unique_ptr<llp::Stream> stream_;
  Address local_;
  Address peer_;
  bool zero_copy_ = false;
};

}  // namespace diwarp::rnic
