// SPDX-License-Identifier: Apache-2.0
// A peer over libibverbs and librdmacm: the kernel's siw, in the guest, or diwarp's drop-ins.
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "endpoint.h"

namespace interop {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Failure(what + ": " + std::strerror(errno));
}

template <typename T>
T* checked(T* object, const char* what) {
  if (object == nullptr) fail(what);
  return object;
}

void require_zero(int result, const char* what) {
  if (result > 0) errno = result;
  if (result != 0) fail(what);
}

/// A posted request is right, so that only a connection that has ended refuses it.
void require_posted(int result, const char* what) {
  if (result != 0)
    throw ConnectionEnded(std::string(what) + ": " + std::strerror(result < 0 ? -result : result));
}

template <typename T>
using Owned = std::unique_ptr<T, std::function<void(T*)>>;

using Channel = Owned<rdma_event_channel>;
using Event = Owned<rdma_cm_event>;

Channel make_channel() {
  // siw sends on its TCP socket in the name of the process that posts, which is then also told, as
  // by a socket, that the peer has gone.
  std::signal(SIGPIPE, SIG_IGN);
  return {checked(rdma_create_event_channel(), "rdma_create_event_channel"),
          rdma_destroy_event_channel};
}

bool readable(int descriptor, Duration limit) {
  pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(limit.count())) > 0;
}

Event next_event(const Channel& channel, Duration limit) {
  rdma_cm_event* event = nullptr;
  if (!readable(channel->fd, limit)) return {nullptr, [](rdma_cm_event*) {}};
  require_zero(rdma_get_cm_event(channel.get(), &event), "rdma_get_cm_event");
  return {event, [](rdma_cm_event* e) { rdma_ack_cm_event(e); }};
}

std::vector<std::byte> private_data_of(const rdma_cm_event& event) {
  const auto* data = static_cast<const std::byte*>(event.param.conn.private_data);
  if (data == nullptr) return {};
  return {data, data + event.param.conn.private_data_len};
}

/// `what` by its name, or Failure (Rejected where that is what came).
void expect(const Channel& channel, rdma_cm_event_type type, Duration limit,
            std::vector<std::byte>* private_data = nullptr) {
  const Event event = next_event(channel, limit);
  if (!event) throw Failure(std::string("no ") + rdma_event_str(type));
  if (event->event == RDMA_CM_EVENT_REJECTED) throw Rejected(private_data_of(*event));
  if (event->event != type) {
    throw Failure(std::string(rdma_event_str(event->event)) + " (" + std::strerror(-event->status) +
                  ") instead of " + rdma_event_str(type));
  }
  if (private_data != nullptr) *private_data = private_data_of(*event);
}

sockaddr_in parse(const std::string& text, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1) {
    throw Failure("not an IPv4 address: " + text);
  }
  return address;
}

sockaddr_in address_of(const Options& options) { return parse(options.address, options.port); }

std::vector<std::byte> own_private_data(const Options& options) {
  std::vector<std::byte> data(options.private_data);
  fill(data, options.server ? 2 : 1);
  return data;
}

rdma_conn_param parameters(const Options& options, const std::vector<std::byte>& data) {
  rdma_conn_param result{};
  result.private_data = data.data();
  result.private_data_len = static_cast<uint8_t>(data.size());
  result.initiator_depth = options.depth;
  result.responder_resources = options.depth;
  return result;
}

/// The connection manager chose a local port that an earlier connection still keeps from use.
struct PortTaken : Failure {
  using Failure::Failure;
};

class VerbsEndpoint final : public Endpoint {
 public:
  VerbsEndpoint(const Options& options, Channel channel, Owned<rdma_cm_id> id);
  ~VerbsEndpoint() override;

  void connect(const Options& options);
  void accept(const Options& options, std::vector<std::byte> request_data);

  uint32_t expose(std::span<std::byte> memory, Rights rights) override;
  void withdraw() override { exposed_.reset(); }
  void post_receive(uint64_t slot) override;
  void post(const Work& work) override;
  std::optional<Completion> next_sent(Duration limit) override { return next(*send_cq_, limit); }
  std::optional<Completion> next_received(Duration limit) override {
    return next(*receive_cq_, limit);
  }
  bool tells_all() const override { return tells_all_; }
  void arm_solicited() override { require_zero(ibv_req_notify_cq(receive_cq_.get(), 1), "notify"); }
  bool solicited_event(Duration limit) override;
  void disconnect() override { rdma_disconnect(id_.get()); }
  Ending wait_ended(Duration limit) override;
  std::vector<std::byte> peer_private_data() const override { return peer_private_data_; }

 private:
  using Region = Owned<ibv_mr>;
  Region register_memory(std::span<std::byte> memory, int access);
  static std::optional<Completion> next(ibv_cq& cq, Duration limit);
  std::string next_async_event();

  const bool tells_all_;
  Channel channel_;
  Owned<rdma_cm_id> id_;
  Owned<ibv_pd> pd_;
  Owned<ibv_comp_channel> completions_;
  Owned<ibv_cq> send_cq_;
  Owned<ibv_cq> receive_cq_;
  Region local_region_;
  Region exposed_;
  std::vector<std::byte> peer_private_data_;
  Ending ending_;
};

VerbsEndpoint::VerbsEndpoint(const Options& options, Channel channel, Owned<rdma_cm_id> id)
    : Endpoint(options),
      tells_all_(options.tells_all),
      channel_(std::move(channel)),
      id_(std::move(id)) {
  // Made by many threads at once, now and then one is refused (ENOSPC).
  static std::mutex making;
  const std::lock_guard lock(making);
  // All connections of the process share it: a thread that finds it empty must not wait.
  require_zero(::fcntl(id_->verbs->async_fd, F_SETFL, O_NONBLOCK), "fcntl");
  pd_ = {checked(ibv_alloc_pd(id_->verbs), "ibv_alloc_pd"), ibv_dealloc_pd};
  completions_ = {checked(ibv_create_comp_channel(id_->verbs), "ibv_create_comp_channel"),
                  ibv_destroy_comp_channel};
  const int depth = static_cast<int>(2 * slots() + 4);
  send_cq_ = {checked(ibv_create_cq(id_->verbs, depth, nullptr, nullptr, 0), "ibv_create_cq"),
              ibv_destroy_cq};
  receive_cq_ = {
      checked(ibv_create_cq(id_->verbs, depth, nullptr, completions_.get(), 0), "ibv_create_cq"),
      ibv_destroy_cq};
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_.get();
  init.recv_cq = receive_cq_.get();
  init.cap = {.max_send_wr = 2 * slots() + 4,
              .max_recv_wr = slots() + 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  require_zero(rdma_create_qp(id_.get(), pd_.get(), &init), "rdma_create_qp");
  local_region_ = register_memory(local(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  for (uint64_t i = 0; i < slots(); ++i) post_receive(i);
}

VerbsEndpoint::~VerbsEndpoint() {
  if (id_->qp != nullptr) rdma_destroy_qp(id_.get());
}

VerbsEndpoint::Region VerbsEndpoint::register_memory(std::span<std::byte> memory, int access) {
  return {checked(ibv_reg_mr(pd_.get(), memory.data(), memory.size(), access), "ibv_reg_mr"),
          ibv_dereg_mr};
}

void VerbsEndpoint::connect(const Options& options) {
  const auto data = own_private_data(options);
  auto wanted = parameters(options, data);
  if (rdma_connect(id_.get(), &wanted) != 0) {
    if (errno == EADDRNOTAVAIL || errno == EADDRINUSE)
      throw PortTaken("rdma_connect: the local port that was chosen is in use");
    fail("rdma_connect");
  }
  expect(channel_, RDMA_CM_EVENT_ESTABLISHED, options.timeout, &peer_private_data_);
}

void VerbsEndpoint::accept(const Options& options, std::vector<std::byte> request_data) {
  peer_private_data_ = std::move(request_data);
  const auto data = own_private_data(options);
  auto wanted = parameters(options, data);
  require_zero(rdma_accept(id_.get(), &wanted), "rdma_accept");
  expect(channel_, RDMA_CM_EVENT_ESTABLISHED, options.timeout);
}

uint32_t VerbsEndpoint::expose(std::span<std::byte> memory, Rights rights) {
  exposed_ = register_memory(memory, (rights.write ? IBV_ACCESS_LOCAL_WRITE : 0) |
                                         (rights.write ? IBV_ACCESS_REMOTE_WRITE : 0) |
                                         (rights.read ? IBV_ACCESS_REMOTE_READ : 0));
  return exposed_->rkey;
}

void VerbsEndpoint::post_receive(uint64_t i) {
  ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(slot(i).data()),
              .length = static_cast<uint32_t>(slot(i).size()),
              .lkey = local_region_->lkey};
  ibv_recv_wr request{};
  ibv_recv_wr* bad = nullptr;
  request.wr_id = i;
  request.sg_list = &sge;
  request.num_sge = 1;
  require_posted(ibv_post_recv(id_->qp, &request, &bad), "ibv_post_recv");
}

void VerbsEndpoint::post(const Work& work) {
  ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(work.local.data()),
              .length = static_cast<uint32_t>(work.local.size()),
              .lkey = local_region_->lkey};
  ibv_send_wr request{};
  ibv_send_wr* bad = nullptr;
  request.sg_list = &sge;
  request.num_sge = work.local.empty() ? 0 : 1;
  request.send_flags = IBV_SEND_SIGNALED;
  if (is_solicited(work.op)) request.send_flags |= IBV_SEND_SOLICITED;
  request.opcode = work.op == Op::write   ? IBV_WR_RDMA_WRITE
                   : work.op == Op::read  ? IBV_WR_RDMA_READ
                   : invalidates(work.op) ? IBV_WR_SEND_WITH_INV
                                          : IBV_WR_SEND;
  // siw's library takes the STag to invalidate from here, not from `invalidate_rkey`.
  request.wr.rdma = {.remote_addr = work.remote_address, .rkey = work.remote_key};
  if (invalidates(work.op)) request.invalidate_rkey = work.remote_key;
  require_posted(ibv_post_send(id_->qp, &request, &bad), "ibv_post_send");
}

std::optional<Completion> VerbsEndpoint::next(ibv_cq& cq, Duration limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  ibv_wc wc{};
  for (uint32_t idle = 0; ibv_poll_cq(&cq, 1, &wc) == 0; ++idle) {
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    // The guest is emulated: a thread that spins takes the processor from the driver.
    if (idle > 100) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return Completion{.id = wc.wr_id,
                    .success = wc.status == IBV_WC_SUCCESS,
                    .status = ibv_wc_status_str(wc.status),
                    .bytes = wc.byte_len,
                    .invalidated = (wc.wc_flags & IBV_WC_WITH_INV) != 0,
                    .invalidated_key = wc.invalidated_rkey};
}

bool VerbsEndpoint::solicited_event(Duration limit) {
  if (!readable(completions_->fd, limit)) return false;
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  require_zero(ibv_get_cq_event(completions_.get(), &cq, &context), "ibv_get_cq_event");
  ibv_ack_cq_events(cq, 1);
  return true;
}

std::string VerbsEndpoint::next_async_event() {
  std::string names;
  ibv_async_event event{};
  while (readable(id_->verbs->async_fd, Duration(0)) &&
         ibv_get_async_event(id_->verbs, &event) == 0) {
    names += (names.empty() ? "" : ", ") + std::string(ibv_event_type_str(event.event_type));
    ibv_ack_async_event(&event);
  }
  return names;
}

Ending VerbsEndpoint::wait_ended(Duration limit) {
  if (!ending_.ended) {
    if (const Event event = next_event(channel_, limit)) {
      ending_.ended = event->event == RDMA_CM_EVENT_DISCONNECTED;
      if (!ending_.ended) throw Failure(rdma_event_str(event->event));
    }
  }
  if (const auto names = next_async_event(); !names.empty()) ending_.event = names;
  return ending_;
}

Owned<rdma_cm_id> own(rdma_cm_id* id) {
  return {id, [](rdma_cm_id* i) { rdma_destroy_id(i); }};
}

class VerbsAcceptor final : public Acceptor {
 public:
  explicit VerbsAcceptor(const Options& options);
  std::unique_ptr<Endpoint> accept(Duration limit) override;

 private:
  const Options& options_;
  uint32_t rejects_;
  Channel channel_ = make_channel();
  Owned<rdma_cm_id> id_;
};

VerbsAcceptor::VerbsAcceptor(const Options& options)
    : options_(options), rejects_(options.rejects) {
  rdma_cm_id* id = nullptr;
  require_zero(rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  id_ = own(id);
  auto address = address_of(options);
  require_zero(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)), "rdma_bind_addr");
  require_zero(rdma_listen(id, 128), "rdma_listen");
}

std::unique_ptr<Endpoint> VerbsAcceptor::accept(Duration limit) {
  while (true) {
    Event event = next_event(channel_, limit);
    if (!event) return nullptr;
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) throw Failure(rdma_event_str(event->event));
    auto request_data = private_data_of(*event);
    auto id = own(event->id);
    event.reset();
    if (rejects_ > 0) {
      --rejects_;
      const auto data = own_private_data(options_);
      rdma_reject(id.get(), data.data(), static_cast<uint8_t>(data.size()));
      continue;
    }
    Channel channel = make_channel();
    require_zero(rdma_migrate_id(id.get(), channel.get()), "rdma_migrate_id");
    auto endpoint = std::make_unique<VerbsEndpoint>(options_, std::move(channel), std::move(id));
    endpoint->accept(options_, std::move(request_data));
    return endpoint;
  }
}

std::unique_ptr<Endpoint> dial_once(const Options& options) {
  Channel channel = make_channel();
  rdma_cm_id* raw = nullptr;
  require_zero(rdma_create_id(channel.get(), &raw, nullptr, RDMA_PS_TCP), "rdma_create_id");
  auto id = own(raw);
  auto address = address_of(options);
  sockaddr_in source{};
  if (!options.source.empty()) source = parse(options.source, 0);
  auto* const from = options.source.empty() ? nullptr : reinterpret_cast<sockaddr*>(&source);
  const int limit = static_cast<int>(options.timeout.count());
  require_zero(rdma_resolve_addr(raw, from, reinterpret_cast<sockaddr*>(&address), limit),
               "rdma_resolve_addr");
  expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, options.timeout);
  require_zero(rdma_resolve_route(raw, limit), "rdma_resolve_route");
  expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, options.timeout);
  auto endpoint = std::make_unique<VerbsEndpoint>(options, std::move(channel), std::move(id));
  endpoint->connect(options);
  return endpoint;
}

}  // namespace

std::unique_ptr<Endpoint> dial(const Options& options) {
  for (int left = 5;; --left) {
    try {
      return dial_once(options);
    } catch (const PortTaken&) {
      if (left == 0) throw;
    }
  }
}

std::unique_ptr<Acceptor> listen(const Options& options) {
  return std::make_unique<VerbsAcceptor>(options);
}

}  // namespace interop
