// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "diwarp/address.h"
#include "diwarp/connect_options.h"
#include "provider/listener.h"

namespace diwarp::rnic {

class Acceptor;
class Control;

/// A port at which the peers of the device's queue pairs meet them. Requests that no queue pair
/// waits for are rejected; none is kept.
class MeetingPoint final : public provider::MeetingPoint {
 public:
  MeetingPoint(std::shared_ptr<Control> control, uint16_t port, const ListenOptions& options);
  ~MeetingPoint() override;
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;

  Address address() const override { return address_; }

 private:
  std::shared_ptr<Control> control_;  // keeps the device
  Address address_;
  std::shared_ptr<Acceptor> acceptor_;
};

}  // namespace diwarp::rnic
