// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "diwarp/address.h"
#include "diwarp/connect_options.h"
#include "provider/listener.h"

namespace diwarp::rnic {

class Acceptor;
class Control;

/// A place where peers connect, with its accept loop on the device's control path.
class Listener final : public provider::Listener {
 public:
  Listener(std::shared_ptr<Control> control, uint16_t port, const ListenOptions& options);
  /// Requests that nobody fetched are rejected.
  ~Listener() override;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::shared_ptr<provider::ConnectionRequest> get_request(Duration timeout) override;
  Address address() const override { return address_; }

 private:
  struct Requests;

  std::shared_ptr<Control> control_;  // keeps the device
  Address address_;
  std::unique_ptr<Requests> requests_;
  std::shared_ptr<Acceptor> acceptor_;
};

}  // namespace diwarp::rnic
