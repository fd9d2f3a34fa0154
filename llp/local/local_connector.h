// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "llp/connector.h"

namespace diwarp::llp {

class LocalPeers;

/// Connects and accepts by the connector below, and makes the streams such that their bytes may go
/// through shared memory once an engine serves them.
class LocalConnector final : public Connector {
 public:
  /// `find_peers`: those of the device; null where it has none. Any thread.
  LocalConnector(Connector& inner, std::function<LocalPeers*()> find_peers)
      : inner_(inner), find_peers_(std::move(find_peers)) {}

  std::unique_ptr<PendingConnection> connect(const Address& source, const Address& peer,
                                             std::error_code& error) override;
  std::unique_ptr<StreamListener> listen(const Address& local,
                                         const ListenSettings& settings) override;
  /// What passed over the descriptor before is not known, so its bytes stay on the wire.
  std::unique_ptr<Stream> adopt(int connected_descriptor) override;
  std::error_code find_source(const Address& own, const Address& peer, Address& source) override {
    return inner_.find_source(own, peer, source);
  }
  /// A stream that is none of this connector's is the inner one's to serve.
  std::unique_ptr<Stream> serve(std::unique_ptr<Stream> stream) override;

 private:
  Connector& inner_;
  const std::function<LocalPeers*()> find_peers_;
};

}  // namespace diwarp::llp
