// SPDX-License-Identifier: Apache-2.0
#include "stack/unix/unix_backend.h"

#include <cerrno>

#include "diwarp/error.h"
#include "stack/unix/unix_connector.h"
#include "stack/unix/unix_datagrams.h"

namespace diwarp::test {

namespace {

class UnixBackend final : public llp::Backend {
 public:
  explicit UnixBackend(const DeviceOptions& options) : options_(options) {}

  std::unique_ptr<llp::DatagramLink> open_datagrams(const Address& local,
                                                    const DatagramOptions& options) override {
    if (options.descriptor >= 0)
      throw Error(make_error_code(Errc::invalid_argument), "No descriptors are adopted here");
    return std::make_unique<UnixDatagramLink>(local, options_.udp_send_buffer);
  }
  llp::Connector& connector() override { return connector_; }

  llp::BackendDescription describe() const override {
    return {.datagrams = "Unix-domain datagrams", .streams = "Unix-domain streams"};
  }
  DatagramSocketAttributes query_datagrams(const Address&) const override { return {}; }

 private:
  const DeviceOptions& options_;
  UnixConnector connector_;
};

}  // namespace

llp::BackendRow unix_row() {
  return {
      .name = "Unix-domain sockets",
      .io = IoBackend::syscall,
      .why_automatic = "chosen automatically",
      .open = [](const llp::BackendSetup& setup, std::string&) -> std::unique_ptr<llp::Backend> {
        return std::make_unique<UnixBackend>(setup.options);
      },
      .why_unavailable = [] { return std::string(); },
      .check_local =
          [](const Address& address) { return address.is_loopback() ? 0 : EADDRNOTAVAIL; }};
}

}  // namespace diwarp::test
