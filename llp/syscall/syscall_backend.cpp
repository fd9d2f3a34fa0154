// SPDX-License-Identifier: Apache-2.0
#include "llp/syscall/syscall_backend.h"

#include "llp/tcp/tcp_connector.h"
#include "llp/udp/focused_udp_link.h"
#include "llp/udp/udp_device.h"

namespace diwarp::llp {

namespace {

class SyscallBackend final : public Backend {
 public:
  explicit SyscallBackend(const DeviceOptions& options) : options_(options) {}

  std::unique_ptr<DatagramLink> open_datagrams(const Address& local,
                                               const DatagramOptions& options) override {
    const UdpOptions udp = udp_options(options_, options);
    if (options.descriptor >= 0) return UdpLink::adopt(options.descriptor, udp);
    return FocusedUdpLink::open(local, udp, options.share_port ? 0 : options.connect_after);
  }
  Connector& connector() override { return connector_; }

  BackendDescription describe() const override {
    const bool zero_copy = options_.zerocopy_from != 0;
    return {.datagrams = describe_udp("system calls", options_),
            .streams = zero_copy ? "TCP system calls, with MSG_ZEROCOPY" : "TCP system calls"};
  }
  DatagramSocketAttributes query_datagrams(const Address& local) const override {
    return ask_udp_support(local, udp_options(options_));
  }

 private:
  const DeviceOptions& options_;
  TcpConnector connector_;
};

}  // namespace

BackendRow syscall_row() {
  return {.name = "system calls",
          .io = IoBackend::syscall,
          .why_automatic = "automatic: they were measured faster in every mode",
          .open = [](const BackendSetup& setup, std::string&) -> std::unique_ptr<Backend> {
            return std::make_unique<SyscallBackend>(setup.options);
          },
          .why_unavailable = [] { return std::string(); },
          .check_local = check_udp_address};
}

}  // namespace diwarp::llp
