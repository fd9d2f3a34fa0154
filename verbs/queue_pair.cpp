// SPDX-License-Identifier: Apache-2.0
#include "diwarp/queue_pair.h"

#include <string>

#include "diwarp/error.h"
#include "provider/protection_domain.h"
#include "provider/queue_pair.h"
#include "provider/queue_pair_init.h"
#include "verbs/handle_access.h"

namespace diwarp {

namespace {

[[noreturn]] void refuse(const char* operation, const char* types) {
  throw Error(make_error_code(Errc::unsupported_operation),
              std::string(operation) + " is for queue pairs of type " + types + " only");
}

/// What only queue pairs of one type do; throws where `operation` is not for this one.
provider::RcOperations& as_rc(const detail::Handle<provider::QueuePair>& handle,
                              const char* operation) {
  if (provider::RcOperations* const operations = handle->rc()) return *operations;
  refuse(operation, "rc");
}

provider::DatagramOperations& as_datagram(const detail::Handle<provider::QueuePair>& handle,
                                          const char* operation) {
  if (provider::DatagramOperations* const operations = handle->datagram()) return *operations;
  refuse(operation, "ud and rd");
}

provider::QueuePairInit with_objects(const QueuePairInit& init) {
  return {.type = init.type,
          .send_cq = named_by(init.send_cq),
          .recv_cq = named_by(init.recv_cq),
          .capacity = init.capacity,
          .datagram = init.datagram,
          .signal_all = init.signal_all,
          .srq = named_by(init.srq),
          .stream = init.stream,
          .reliable = init.reliable,
          .number = init.number};
}

}  // namespace

QueuePair::QueuePair(const ProtectionDomain& pd, const QueuePairInit& init)
    : impl_(impl_of(pd)->make_queue_pair(with_objects(init))) {}

std::error_code QueuePair::post_send(const SendWorkRequest& request) noexcept {
  size_t posted = 0;
  provider::QueuePair* const object = impl_.alive();
  return object != nullptr ? object->post_sends({&request, 1}, posted) : impl_.fault();
}

std::error_code QueuePair::post_sends(std::span<const SendWorkRequest> requests,
                                      size_t& posted) noexcept {
  posted = 0;
  provider::QueuePair* const object = impl_.alive();
  return object != nullptr ? object->post_sends(requests, posted) : impl_.fault();
}

std::error_code QueuePair::post_all_sends(std::span<const SendWorkRequest> requests) noexcept {
  provider::QueuePair* const object = impl_.alive();
  return object != nullptr ? object->post_all_sends(requests) : impl_.fault();
}

std::error_code QueuePair::post_write_record(const WriteRecordWorkRequest& request) noexcept {
  return post_send({.wr_id = request.wr_id,
                    .sges = request.sges,
                    .flags = request.flags,
                    .destination = request.destination,
                    .opcode = WrOpcode::write_record,
                    .remote = request.remote,
                    .immediate = request.immediate});
}

std::error_code QueuePair::post_read(const ReadWorkRequest& request) noexcept {
  return post_send({.wr_id = request.wr_id,
                    .sges = request.sges,
                    .flags = request.flags,
                    .destination = request.destination,
                    .opcode = WrOpcode::rdma_read,
                    .remote = request.remote,
                    .limits = request.limits});
}

std::error_code QueuePair::post_recv(const ReceiveWorkRequest& request) noexcept {
  size_t posted = 0;
  return post_recvs({&request, 1}, posted);
}

std::error_code QueuePair::post_recvs(std::span<const ReceiveWorkRequest> requests,
                                      size_t& posted) noexcept {
  posted = 0;
  provider::QueuePair* const object = impl_.alive();
  return object != nullptr ? object->post_recvs(requests, posted) : impl_.fault();
}

void QueuePair::modify(QpState state) { impl_->modify(state); }

void QueuePair::modify_to_rtr(const StreamAttributes& stream) {
  as_rc(impl_, "modify_to_rtr()").modify_to_rtr(stream);
}

void QueuePair::await_peer(const NamedPeer& peer) { as_rc(impl_, "await_peer()").await_peer(peer); }

void QueuePair::limit_peer_wait(Duration timeout) {
  as_rc(impl_, "limit_peer_wait()").limit_peer_wait(timeout);
}

std::vector<std::byte> QueuePair::connect(const Address& peer, const ConnectOptions& options) {
  return as_rc(impl_, "connect()").connect(peer, options);
}

std::vector<std::byte> QueuePair::connect_on(int descriptor, const ConnectOptions& options) {
  return as_rc(impl_, "connect_on()").connect_on(descriptor, options);
}

std::vector<std::byte> QueuePair::accept_on(int descriptor, const AcceptOptions& options,
                                            Duration timeout) {
  return as_rc(impl_, "accept_on()").accept_on(descriptor, options, timeout);
}

void QueuePair::disconnect(const DisconnectOptions& options) {
  as_rc(impl_, "disconnect()").disconnect(options);
}

bool QueuePair::wait_disconnected(Duration timeout) {
  return as_rc(impl_, "wait_disconnected()").wait_disconnected(timeout);
}

uint32_t QueuePair::number() const { return impl_->number(); }
QpState QueuePair::state() const { return impl_->state(); }
Address QueuePair::address() const { return impl_->local_address(); }
QueuePairAttributes QueuePair::query() const { return impl_->query(); }

QueuePairAttributes QueuePair::query(const Address& destination) const {
  QueuePairAttributes attributes = impl_->query();
  if (provider::DatagramOperations* const datagram = impl_->datagram())
    attributes.max_datagram_payload = datagram->max_datagram_payload(destination);
  return attributes;
}

void QueuePair::set_remote_access(Access accesses) { impl_->set_remote_access(accesses); }

void QueuePair::set_q_key(uint32_t q_key) { as_datagram(impl_, "set_q_key()").set_q_key(q_key); }

void QueuePair::set_max_rate(uint64_t bytes_per_second) {
  as_datagram(impl_, "set_max_rate()").set_max_rate(bytes_per_second);
}

void QueuePair::join(const Address& group, std::string_view interface) {
  as_datagram(impl_, "join()").join(group, interface);
}

void QueuePair::leave(const Address& group, std::string_view interface) {
  as_datagram(impl_, "leave()").leave(group, interface);
}

void QueuePair::set_sources(std::span<const SourceFilter> sources) {
  as_datagram(impl_, "set_sources()").set_sources(sources);
}

std::optional<DatagramError> QueuePair::poll_error() {
  return as_datagram(impl_, "poll_error()").poll_error();
}

std::vector<OpenRecord> QueuePair::open_records() const {
  return as_datagram(impl_, "open_records()").open_records();
}

std::vector<ReliablePeer> QueuePair::peers() const { return as_datagram(impl_, "peers()").peers(); }

}  // namespace diwarp
