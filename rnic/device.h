// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "diwarp/attributes.h"
#include "diwarp/device_options.h"
#include "diwarp/types.h"
#include "llp/backend.h"
#include "rnic/context/device_context.h"

namespace diwarp::rnic {

class Control;

/// The parts of a new device besides its public options.
struct DeviceParts {
  const Clock* clock = nullptr;              ///< null: the steady clock
  DatagramLinkFactory datagram_links;        ///< empty: the backend's
  const llp::BackendRow* backend = nullptr;  ///< null: of the table, as the options say
};

/// The software RNIC: chooses how bytes are moved, and starts the control path.
class Device final : public DeviceContext {
 public:
  Device(const Address& address, const DeviceOptions& options, DeviceParts parts = {});
  ~Device() override;

  /// The control path: connects, accepts, negotiates. Started at first use.
  Control& control();
  ConnectionControl& connections() override;

  DeviceAttributes query() const;
  /// Asks a socket of its own. Throws Error where none can be opened.
  DatagramSocketAttributes query_datagram_sockets() const;

 private:
  std::unique_ptr<llp::Backend> open_backend(const llp::BackendRow* wanted);

  llp::BackendRow row_ = {};  // of the backend in use
  std::string io_reason_;     // why so: a message without its end
  std::mutex mutex_;          // guards control_
  std::unique_ptr<Control> control_;
};

/// The control path, which keeps its device while it is in use.
std::shared_ptr<Control> control_of(const std::shared_ptr<Device>& device);

}  // namespace diwarp::rnic
