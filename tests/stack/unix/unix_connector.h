// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llp/connector.h"

namespace diwarp::test {

/// Connections over Unix-domain streams, between hosts that are all this one.
class UnixConnector final : public llp::Connector {
 public:
  std::unique_ptr<llp::PendingConnection> connect(const Address& source, const Address& peer,
                                                  std::error_code& error) override;
  std::unique_ptr<llp::StreamListener> listen(const Address& local,
                                              const llp::ListenSettings& settings) override;
  std::unique_ptr<llp::Stream> adopt(int connected_descriptor) override;
  std::error_code find_source(const Address& own, const Address& peer, Address& source) override;
};

}  // namespace diwarp::test
