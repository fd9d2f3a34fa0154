// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/meeting_point.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "rnic/cm/acceptor.h"
#include "rnic/cm/control.h"
#include "rnic/cm/meeting.h"

namespace diwarp::rnic {

MeetingPoint::MeetingPoint(std::shared_ptr<Control> control, uint16_t port,
                           const ListenOptions& options)
    : control_(std::move(control)) {
  auto listener = open_listener(*control_, control_->device().address().with_port(port), options);
  address_ = listener->local_address();
  acceptor_ = std::make_shared<Acceptor>(
      *control_, std::move(listener), options,
      [control = control_.get()](IncomingRequest& request) { control->meetings().take(request); });
  boost::asio::post(control_->context(), [acceptor = acceptor_] { acceptor->begin(); });
}

MeetingPoint::~MeetingPoint() {
  control_->exclusively([this] { acceptor_->close(); });
}

}  // namespace diwarp::rnic
