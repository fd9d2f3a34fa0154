// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llp/connector.h"

namespace diwarp::llp {

/// Connections over TCP. Their descriptors are closed on exec from their first moment.
class TcpConnector : public Connector {
 public:
  /// The kernel chooses the port in connect(): one port serves many peers.
  std::unique_ptr<PendingConnection> connect(const Address& source, const Address& peer,
                                             std::error_code& error) override;
  /// Connections of an earlier listener that stay in TIME_WAIT are no hindrance.
  std::unique_ptr<StreamListener> listen(const Address& local,
                                         const ListenSettings& settings) override;
  /// As TcpStream::adopt() has it.
  std::unique_ptr<Stream> adopt(int connected_descriptor) override;
  std::error_code find_source(const Address& own, const Address& peer, Address& source) override;
};

}  // namespace diwarp::llp
