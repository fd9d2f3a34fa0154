// SPDX-License-Identifier: Apache-2.0
// A peer over diwarp.
#include <diwarp/verbs.h>

#include <string>
#include <string_view>
#include <utility>

#include "endpoint.h"

namespace interop {
namespace {

std::vector<std::byte> own_private_data(const Options& options) {
  std::vector<std::byte> data(options.private_data);
  fill(data, options.server ? 2 : 1);
  return data;
}

diwarp::Access access_of(Rights rights) {
  auto access = diwarp::Access::none;
  if (rights.write) access = access | diwarp::Access::local_write | diwarp::Access::remote_write;
  if (rights.read) access = access | diwarp::Access::remote_read;
  if (rights.invalidate) access = access | diwarp::Access::remote_invalidate;
  return access;
}

diwarp::WrOpcode opcode_of(Op op) {
  if (op == Op::write) return diwarp::WrOpcode::rdma_write;
  if (op == Op::read) return diwarp::WrOpcode::rdma_read;
  return invalidates(op) ? diwarp::WrOpcode::send_with_invalidate : diwarp::WrOpcode::send;
}

class DiwarpEndpoint final : public Endpoint {
 public:
  DiwarpEndpoint(const Options& options, const diwarp::Device& device);

  void connect(const Options& options);
  void accept(const Options& options, diwarp::ConnectionRequest& request);

  uint32_t expose(std::span<std::byte> memory, Rights rights) override;
  void withdraw() override { exposed_.reset(); }
  void post_receive(uint64_t slot) override;
  void post(const Work& work) override;
  std::optional<Completion> next_sent(Duration limit) override { return next(send_cq_, limit); }
  std::optional<Completion> next_received(Duration limit) override {
    return next(receive_cq_, limit);
  }
  bool tells_all() const override;
  void arm_solicited() override { receive_cq_.arm(true); }
  bool solicited_event(Duration limit) override { return channel_.get_event(limit).has_value(); }
  void disconnect() override { qp_.disconnect(); }
  Ending wait_ended(Duration limit) override;
  std::vector<std::byte> peer_private_data() const override { return peer_private_data_; }
  std::string negotiated() const override;

 private:
  static std::optional<Completion> next(diwarp::CompletionQueue& cq, Duration limit);

  const diwarp::Capability able_;
  diwarp::ProtectionDomain pd_;
  diwarp::CompletionChannel channel_;
  diwarp::CompletionQueue send_cq_;
  diwarp::CompletionQueue receive_cq_;
  diwarp::QueuePair qp_;
  diwarp::MemoryRegion region_;
  std::optional<diwarp::MemoryRegion> exposed_;
  std::vector<std::byte> peer_private_data_;
};

diwarp::QueuePairInit init_of(const diwarp::CompletionQueue& send_cq,
                              const diwarp::CompletionQueue& receive_cq, uint32_t slots) {
  diwarp::QueuePairInit init;
  init.type = diwarp::QpType::rc;
  init.send_cq = send_cq;
  init.recv_cq = receive_cq;
  init.capacity.max_send_wr = 2 * slots + 4;
  init.capacity.max_recv_wr = slots + 1;
  init.stream.receive_not_ready = diwarp::ReceiveNotReady::terminate;
  return init;
}

DiwarpEndpoint::DiwarpEndpoint(const Options& options, const diwarp::Device& device)
    : Endpoint(options),
      able_(device.query().capabilities),
      pd_(device),
      channel_(device),
      send_cq_(device, 2 * slots() + 4),
      receive_cq_(device, 2 * slots() + 4, channel_),
      qp_(pd_, init_of(send_cq_, receive_cq_, slots())),
      region_(pd_, local(), diwarp::Access::local_write | diwarp::Access::remote_write) {
  for (uint64_t i = 0; i < slots(); ++i) post_receive(i);
}

void DiwarpEndpoint::connect(const Options& options) {
  const auto data = own_private_data(options);
  const auto peer = diwarp::Address::parse(options.address).with_port(options.port);
  diwarp::ConnectOptions request{.private_data = data,
                                 .timeout = options.timeout,
                                 .crc = options.crc,
                                 .revision = options.revision,
                                 .markers = options.markers,
                                 .ord = options.depth,
                                 .ird = options.depth};
  if (has(able_, diwarp::Capability::mpa_choices)) {  // else the device decides
    request.peer_to_peer = options.peer_to_peer;
    request.fallback = false;
  }
  peer_private_data_ = qp_.connect(peer, request);
}

void DiwarpEndpoint::accept(const Options& options, diwarp::ConnectionRequest& request) {
  const auto sent = request.private_data();
  peer_private_data_.assign(sent.begin(), sent.end());
  const auto data = own_private_data(options);
  diwarp::AcceptOptions answer;
  answer.private_data = data;
  answer.crc = options.crc;
  answer.markers = options.markers;
  answer.ord = options.depth;
  answer.ird = options.depth;
  request.accept(qp_, answer);
}

bool DiwarpEndpoint::tells_all() const {
  return has(able_, diwarp::Capability::solicited_events | diwarp::Capability::told_invalidations);
}

uint32_t DiwarpEndpoint::expose(std::span<std::byte> memory, Rights rights) {
  exposed_.emplace(pd_, memory, access_of(rights));
  return exposed_->rkey();
}

void DiwarpEndpoint::post_receive(uint64_t i) {
  const diwarp::Sge sge{slot(i).data(), static_cast<uint32_t>(slot(i).size()), region_.lkey()};
  if (const auto error = qp_.post_recv({.wr_id = i, .sges = {&sge, 1}})) {
    throw ConnectionEnded("post_recv: " + error.message());
  }
}

void DiwarpEndpoint::post(const Work& work) {
  const diwarp::Sge sge{work.local.data(), static_cast<uint32_t>(work.local.size()),
                        region_.lkey()};
  diwarp::SendWorkRequest request;
  request.sges = {&sge, work.local.empty() ? size_t{0} : size_t{1}};
  request.opcode = opcode_of(work.op);
  if (is_solicited(work.op)) request.flags = request.flags | diwarp::SendFlags::solicited;
  request.remote = {.stag = work.remote_key, .offset = work.remote_address};
  if (invalidates(work.op)) request.invalidate_stag = work.remote_key;
  if (const auto error = qp_.post_send(request)) {
    throw ConnectionEnded("post_send: " + error.message());
  }
}

std::optional<Completion> DiwarpEndpoint::next(diwarp::CompletionQueue& cq, Duration limit) {
  const auto wc = cq.wait(limit);
  if (!wc) return std::nullopt;
  return Completion{.id = wc->wr_id,
                    .success = wc->status == diwarp::WcStatus::success,
                    .status = std::string(diwarp::to_string(wc->status)),
                    .bytes = wc->byte_count,
                    .invalidated = wc->invalidated,
                    .invalidated_key = wc->invalidated_stag};
}

Ending DiwarpEndpoint::wait_ended(Duration limit) {
  Ending ending{.ended = qp_.wait_disconnected(limit), .event = "", .terminate = ""};
  if (const auto terminate = qp_.query().terminate) {
    ending.terminate = std::string(terminate->received ? "received " : "sent ") +
                       std::to_string(terminate->code.layer) + "/" +
                       std::to_string(terminate->code.type) + "/" +
                       std::to_string(terminate->code.code);
  }
  return ending;
}

std::string DiwarpEndpoint::negotiated() const {
  const auto now = qp_.query();
  return "revision " + std::to_string(now.mpa_revision) + (now.crc ? ", crc" : ", no crc") +
         (now.receive_markers ? ", receives markers" : "") +
         (now.send_markers ? ", sends markers" : "") + ", ord " + std::to_string(now.ord) +
         ", ird " + std::to_string(now.ird) + ", peer " + now.peer_address.host();
}

class DiwarpAcceptor final : public Acceptor {
 public:
  explicit DiwarpAcceptor(const Options& options)
      : options_(options),
        rejects_(options.rejects),
        device_(diwarp::Device::open(options.device.empty() ? options.address : options.device)),
        listener_(device_, options.port) {}

  std::unique_ptr<Endpoint> accept(Duration limit) override;

 private:
  const Options& options_;
  uint32_t rejects_;
  diwarp::Device device_;
  diwarp::Listener listener_;
};

std::unique_ptr<Endpoint> DiwarpAcceptor::accept(Duration limit) {
  while (auto request = listener_.get_request(limit)) {
    if (rejects_ > 0) {
      --rejects_;
      request->reject(own_private_data(options_));
      continue;
    }
    auto endpoint = std::make_unique<DiwarpEndpoint>(options_, device_);
    endpoint->accept(options_, *request);
    return endpoint;
  }
  return nullptr;
}

/// One for all connections of this process.
const diwarp::Device& client_device(const Options& options) {
  static const diwarp::Device device =
      diwarp::Device::open(options.device.empty() ? "127.0.0.1" : options.device);
  return device;
}

}  // namespace

std::unique_ptr<Endpoint> dial(const Options& options) {
  auto endpoint = std::make_unique<DiwarpEndpoint>(options, client_device(options));
  try {
    endpoint->connect(options);
  } catch (const diwarp::RejectedError& error) {
    throw Rejected(error.private_data());
  }
  return endpoint;
}

std::unique_ptr<Acceptor> listen(const Options& options) {
  return std::make_unique<DiwarpAcceptor>(options);
}

}  // namespace interop
