// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "llp/capture/captured_stream.h"

namespace diwarp::llp {
namespace {

class CapturedPending final : public PendingConnection {
 public:
  CapturedPending(std::unique_ptr<PendingConnection> inner, Capture& capture)
      : inner_(std::move(inner)), capture_(capture) {}
  ConnectResult finish() override {
    ConnectResult result = inner_->finish();
    if (result.stream) result.stream = capture_stream(std::move(result.stream), capture_);
    return result;
  }
  int descriptor() const override { return inner_->descriptor(); }

 private:
  const std::unique_ptr<PendingConnection> inner_;
  Capture& capture_;
};

class CapturedListener final : public StreamListener {
 public:
  CapturedListener(std::unique_ptr<StreamListener> inner, Capture& capture)
      : inner_(std::move(inner)), capture_(capture) {}
  AcceptResult accept() override {
    AcceptResult result = inner_->accept();
    if (result.stream) result.stream = capture_stream(std::move(result.stream), capture_);
    return result;
  }
  Refusal refuse_next() override { return inner_->refuse_next(); }
  Address local_address() const override { return inner_->local_address(); }
  int descriptor() const override { return inner_->descriptor(); }

 private:
  const std::unique_ptr<StreamListener> inner_;
  Capture& capture_;
};

class CapturedConnector final : public Connector {
 public:
  CapturedConnector(Connector& inner, Capture& capture) : inner_(inner), capture_(capture) {}

  std::unique_ptr<PendingConnection> connect(const Address& source, const Address& peer,
                                             std::error_code& error) override {
    auto pending = inner_.connect(source, peer, error);
    if (!pending) return nullptr;
    return std::make_unique<CapturedPending>(std::move(pending), capture_);
  }
  std::unique_ptr<StreamListener> listen(const Address& local,
                                         const ListenSettings& settings) override {
    return std::make_unique<CapturedListener>(inner_.listen(local, settings), capture_);
  }
  std::unique_ptr<Stream> adopt(int connected_descriptor) override {
    return capture_stream(inner_.adopt(connected_descriptor), capture_);
  }
  std::error_code find_source(const Address& own, const Address& peer, Address& source) override {
    return inner_.find_source(own, peer, source);
  }
  /// All streams that come here are this connector's.
  std::unique_ptr<Stream> serve(std::unique_ptr<Stream> stream) override {
    auto& captured = static_cast<CapturedStream&>(*stream);
    return std::make_unique<CapturedStream>(inner_.serve(captured.take_inner()),
                                            captured.connection());
  }

 private:
  Connector& inner_;
  Capture& capture_;
};

class CapturedBackend final : public Backend {
 public:
  CapturedBackend(std::unique_ptr<Backend> inner, std::unique_ptr<Capture> capture)
      : capture_(std::move(capture)),
        inner_(std::move(inner)),
        connector_(inner_->connector(), *capture_) {}

  std::unique_ptr<DatagramLink> open_datagrams(const Address& local,
                                               const DatagramOptions& options) override {
    return capture_link(inner_->open_datagrams(local, options), *capture_);
  }
  Connector& connector() override { return connector_; }
  BackendDescription describe() const override { return inner_->describe(); }
  DatagramSocketAttributes query_datagrams(const Address& local) const override {
    return inner_->query_datagrams(local);
  }
  void on_ready(std::function<void()> callback) override { inner_->on_ready(std::move(callback)); }

 private:
  const std::unique_ptr<Capture> capture_;
  const std::unique_ptr<Backend> inner_;
  CapturedConnector connector_;
};

}  // namespace

std::unique_ptr<Backend> capture_backend(std::unique_ptr<Backend> inner,
                                         std::unique_ptr<Capture> capture) {
  return std::make_unique<CapturedBackend>(std::move(inner), std::move(capture));
}

}  // namespace diwarp::llp
