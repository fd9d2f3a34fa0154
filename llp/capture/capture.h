// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "llp/backend.h"
#include "llp/capture/capture_file.h"

/// Decorators that write down what links and streams carry.
namespace diwarp::llp {

/// Where the packets of one device go: an interface of a file, with the device's counters. Any
/// thread.
class Capture {
 public:
  Capture(std::shared_ptr<CaptureFile> file, const std::string& name, Counters& counters)
      : file_(std::move(file)), interface_(file_->add_interface(name, counters)) {}
  ~Capture() { file_->end_interface(interface_); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void add(WallTime at, Direction direction, const Packet& packet) {
    file_->add(interface_, at, direction, packet);
  }

 private:
  const std::shared_ptr<CaptureFile> file_;
  const uint32_t interface_;
};

/// A backend whose links and streams are captured. It owns the one inside.
std::unique_ptr<Backend> capture_backend(std::unique_ptr<Backend> inner,
                                         std::unique_ptr<Capture> capture);

/// `backend`, captured if the device's options ask for it, or DIWARP_PCAP (with DIWARP_PCAP_LIMIT,
/// in bytes) does. Null stays null. Throws Error where the options' file cannot be had; of the
/// variable's a line in the log tells.
std::unique_ptr<Backend> captured_as_asked(std::unique_ptr<Backend> backend,
                                           const BackendSetup& setup);

/// Whether captured_as_asked() captures, if it can.
bool wants_capture(const DeviceOptions& options);

/// A link, or a stream from its first byte on, of a capture that outlives it.
std::unique_ptr<DatagramLink> capture_link(std::unique_ptr<DatagramLink> inner, Capture& capture);
std::unique_ptr<Stream> capture_stream(std::unique_ptr<Stream> inner, Capture& capture);

}  // namespace diwarp::llp
