// SPDX-License-Identifier: Apache-2.0
#include "llp/local/local_connector.h"

#include "llp/local/local_stream.h"

namespace diwarp::llp {
namespace {

class LocalPending final : public PendingConnection {
 public:
  explicit LocalPending(std::unique_ptr<PendingConnection> inner) : inner_(std::move(inner)) {}
  ConnectResult finish() override {
    ConnectResult result = inner_->finish();
    if (result.stream)
      result.stream = std::make_unique<LocalStream>(std::move(result.stream), true);
    return result;
  }
  int descriptor() const override { return inner_->descriptor(); }

 private:
  const std::unique_ptr<PendingConnection> inner_;
};

class LocalListener final : public StreamListener {
 public:
  explicit LocalListener(std::unique_ptr<StreamListener> inner) : inner_(std::move(inner)) {}
  AcceptResult accept() override {
    AcceptResult result = inner_->accept();
    if (result.stream)
      result.stream = std::make_unique<LocalStream>(std::move(result.stream), true);
    return result;
  }
  Refusal refuse_next() override { return inner_->refuse_next(); }
  Address local_address() const override { return inner_->local_address(); }
  int descriptor() const override { return inner_->descriptor(); }

 private:
  const std::unique_ptr<StreamListener> inner_;
};

}  // namespace

std::unique_ptr<PendingConnection> LocalConnector::connect(const Address& source,
                                                           const Address& peer,
                                                           std::error_code& error) {
  auto pending = inner_.connect(source, peer, error);
  if (!pending) return nullptr;
  return std::make_unique<LocalPending>(std::move(pending));
}

std::unique_ptr<StreamListener> LocalConnector::listen(const Address& local,
                                                       const ListenSettings& settings) {
  return std::make_unique<LocalListener>(inner_.listen(local, settings));
}

std::unique_ptr<Stream> LocalConnector::adopt(int connected_descriptor) {
  return std::make_unique<LocalStream>(inner_.adopt(connected_descriptor), false);
}

std::unique_ptr<Stream> LocalConnector::serve(std::unique_ptr<Stream> stream) {
  auto* const local = dynamic_cast<LocalStream*>(stream.get());
  if (local == nullptr) return inner_.serve(std::move(stream));
  if (LocalPeers* const peers = find_peers_()) local->serve(*peers);
  return stream;
}

}  // namespace diwarp::llp
