// SPDX-License-Identifier: Apache-2.0
#include "drop_in/random/world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace random_calls {
namespace {

std::byte* mapped(size_t bytes, int protection) {
  void* const place = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(place != MAP_FAILED, "mmap failed");
  return static_cast<std::byte*>(place);
}

/// A socket that has a port of loopback's, and only that.
int bound_socket(int type, uint16_t& port) {
  const int made = ::socket(AF_INET, type | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  require(made >= 0 && ::bind(made, reinterpret_cast<const sockaddr*>(&name), length) == 0 &&
              ::getsockname(made, reinterpret_cast<sockaddr*>(&name), &length) == 0,
          "a port of loopback's cannot be had");
  port = ntohs(name.sin_port);
  return made;
}

/// EAGAIN and all others that the system has a name for.
bool is_errno(int code) { return code > 0 && ::strerrorname_np(code) != nullptr; }

}  // namespace

Memory::Memory()
    : shared_(mapped(kSharedBytes, PROT_READ | PROT_WRITE)),
      read_only_(mapped(kReadOnlyBytes, PROT_READ)) {}

Memory::~Memory() {
  ::munmap(shared_, kSharedBytes);
  ::munmap(read_only_, kReadOnlyBytes);
}

ClosedPorts::ClosedPorts()
    : tcp_(bound_socket(SOCK_STREAM, tcp_port_)), udp_(bound_socket(SOCK_DGRAM, udp_port_)) {}

ClosedPorts::~ClosedPorts() {
  ::close(tcp_);
  ::close(udp_);
}

std::vector<ibv_qp*> World::all_queue_pairs() const {
  std::vector<ibv_qp*> all = queue_pairs;
  for (const rdma_cm_id* id : ids)
    if (id->qp != nullptr) all.push_back(id->qp);
  return all;
}

std::vector<ibv_cq*> World::all_queues() const {
  std::vector<ibv_cq*> all = queues;
  for (const rdma_cm_id* id : ids) {
    if (id->send_cq != nullptr) all.push_back(id->send_cq);
    if (id->recv_cq != nullptr) all.push_back(id->recv_cq);
  }
  return all;
}

void require(bool right, const char* what) {
  if (!right) throw std::logic_error(what);
}

bool succeeded(int code) {
  require(code == 0 || is_errno(code), "a call returned what is no errno value");
  return code == 0;
}

bool succeeded_or_errno(int result) {
  require(result >= 0 || (result == -1 && is_errno(errno)), "a call failed without an errno value");
  return result >= 0;
}

bool made_or_errno(const void* object) {
  require(object != nullptr || is_errno(errno), "a call gave null without an errno value");
  return object != nullptr;
}

void set_nonblocking(int descriptor) {
  require(::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0,
          "a descriptor could not be made non-blocking");
}

}  // namespace random_calls
