// SPDX-License-Identifier: Apache-2.0
#include "llp/uring/uring_backend.h"

#include <utility>

#include "llp/udp/udp_device.h"
#include "llp/uring/uring_connector.h"
#include "llp/uring/uring_udp_link.h"

namespace diwarp::llp {

namespace {

class UringBackend final : public Backend {
 public:
  UringBackend(const DeviceOptions& options, std::shared_ptr<UringQueue> queue)
      : options_(options), queue_(std::move(queue)), connector_(queue_) {}

  std::unique_ptr<DatagramLink> open_datagrams(const Address& local,
                                               const DatagramOptions& options) override {
    const UdpOptions udp = udp_options(options_, options);
    return options.descriptor >= 0 ? UringUdpLink::adopt(queue_, options.descriptor, udp)
                                   : UringUdpLink::open(queue_, local, udp);
  }
  Connector& connector() override { return connector_; }

  BackendDescription describe() const override {
    return {.datagrams = describe_udp("io_uring", options_), .streams = "TCP io_uring"};
  }
  DatagramSocketAttributes query_datagrams(const Address& local) const override {
    return ask_udp_support(local, udp_options(options_));
  }
  void on_ready(std::function<void()> callback) override { queue_->on_ready(std::move(callback)); }

 private:
  const DeviceOptions& options_;
  const std::shared_ptr<UringQueue> queue_;
  UringConnector connector_;
};

}  // namespace

std::unique_ptr<Backend> open_uring(const BackendSetup& setup, UringOptions ring,
                                    std::string& why_not) {
  ring.counters = &setup.counters;
  auto queue = UringQueue::create(ring, why_not);
  if (!queue) return nullptr;
  return std::make_unique<UringBackend>(setup.options, std::move(queue));
}

BackendRow uring_row() {
  return {.name = "io_uring",
          .io = IoBackend::uring,
          .why_automatic = "chosen automatically",
          .open = [](const BackendSetup& setup,
                     std::string& why_not) { return open_uring(setup, {}, why_not); },
          .why_unavailable = [] { return why_no_uring(); },
          .check_local = check_udp_address};
}

}  // namespace diwarp::llp
