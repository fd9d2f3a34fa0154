// SPDX-License-Identifier: Apache-2.0
// rdma_getaddrinfo: getaddrinfo's answers, in librdmacm's form.
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "compat/common/addresses.h"
#include "compat/common/boundary.h"
#include "compat/common/export.h"

namespace diwarp::compat {
namespace {

void free_one(rdma_addrinfo* one) {
  std::free(one->ai_src_addr);
  std::free(one->ai_dst_addr);
  std::free(one->ai_src_canonname);
  std::free(one->ai_dst_canonname);
  std::free(one->ai_route);
  std::free(one->ai_connect);
  std::free(one);
}

struct Freeing {
  void operator()(rdma_addrinfo* one) const { free_one(one); }
  void operator()(addrinfo* found) const { ::freeaddrinfo(found); }
};
using Answer = std::unique_ptr<rdma_addrinfo, Freeing>;
using Found = std::unique_ptr<addrinfo, Freeing>;

sockaddr* copy_of(const sockaddr* address, socklen_t length) {
  refuse_if(address == nullptr || length < sizeof(sockaddr), EINVAL);
  auto* const copy = static_cast<sockaddr*>(std::malloc(length));
  refuse_if(copy == nullptr, ENOMEM);
  std::memcpy(copy, address, length);
  return copy;
}

bool is_datagram(const rdma_addrinfo& hints) {
  return hints.ai_qp_type == IBV_QPT_UD || hints.ai_port_space == RDMA_PS_UDP;
}

/// What the kinds of queue pair and port space are, where the hints leave them open.
void choose_kind(const rdma_addrinfo& hints, rdma_addrinfo& answer) {
  const bool datagram = is_datagram(hints);
  answer.ai_qp_type = hints.ai_qp_type != 0 ? hints.ai_qp_type : datagram ? IBV_QPT_UD : IBV_QPT_RC;
  answer.ai_port_space = hints.ai_port_space != 0 ? hints.ai_port_space
                         : datagram               ? RDMA_PS_UDP
                                                  : RDMA_PS_TCP;
}

addrinfo system_hints(const rdma_addrinfo& hints) {
  addrinfo made{};
  if ((hints.ai_flags & RAI_PASSIVE) != 0) made.ai_flags |= AI_PASSIVE;
  if ((hints.ai_flags & RAI_NUMERICHOST) != 0) made.ai_flags |= AI_NUMERICHOST;
  made.ai_family = hints.ai_family;
  made.ai_socktype = is_datagram(hints) ? SOCK_DGRAM : SOCK_STREAM;
  return made;
}

void set_source(rdma_addrinfo& answer, const sockaddr* address, socklen_t length) {
  answer.ai_src_addr = copy_of(address, length);
  answer.ai_src_len = length;
}

void set_destination(rdma_addrinfo& answer, const sockaddr* address, socklen_t length) {
  answer.ai_dst_addr = copy_of(address, length);
  answer.ai_dst_len = length;
}

/// Returns getaddrinfo's error.
int look_up(const char* node, const char* service, const rdma_addrinfo& hints,
            rdma_addrinfo& answer) {
  const addrinfo wanted = system_hints(hints);
  addrinfo* first = nullptr;
  if (const int error = ::getaddrinfo(node, service, &wanted, &first)) return error;
  const Found found(first);
  answer.ai_family = found->ai_family;
  if ((hints.ai_flags & RAI_PASSIVE) != 0)
    set_source(answer, found->ai_addr, found->ai_addrlen);
  else
    set_destination(answer, found->ai_addr, found->ai_addrlen);
  return 0;
}

/// Without names the hints' own addresses are the answer.
void copy_hints(const rdma_addrinfo& hints, rdma_addrinfo& answer) {
  answer.ai_family = hints.ai_family;
  if (hints.ai_dst_len != 0) {
    set_destination(answer, hints.ai_dst_addr, hints.ai_dst_len);
    answer.ai_family = hints.ai_dst_addr->sa_family;
  }
}

int answer_to(const char* node, const char* service, const rdma_addrinfo& hints, Answer& answer) {
  answer->ai_flags = hints.ai_flags;
  choose_kind(hints, *answer);
  if (node != nullptr || service != nullptr) {
    if (const int error = look_up(node, service, hints, *answer)) return error;
  } else {
    copy_hints(hints, *answer);
  }
  if (answer->ai_src_len != 0 || hints.ai_src_len == 0) return 0;
  set_source(*answer, hints.ai_src_addr, hints.ai_src_len);
  if (answer->ai_family == 0) answer->ai_family = hints.ai_src_addr->sa_family;
  return 0;
}

}  // namespace
}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT int rdma_getaddrinfo(const char* node, const char* service,
                                          const rdma_addrinfo* hints, rdma_addrinfo** result) {
  int error = 0;
  const int failed = minus_one([&] {
    refuse_if((node == nullptr && service == nullptr && hints == nullptr) || result == nullptr,
              EINVAL);
    Answer answer(static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo))));
    refuse_if(answer == nullptr, ENOMEM);
    error = answer_to(node, service, hints != nullptr ? *hints : rdma_addrinfo{}, answer);
    if (error == 0) *result = answer.release();
  });
  return failed != 0 ? failed : error;
}

DIWARP_COMPAT_EXPORT void rdma_freeaddrinfo(rdma_addrinfo* first) {
  while (first != nullptr) {
    rdma_addrinfo* const next = first->ai_next;
    free_one(first);
    first = next;
  }
}

}  // extern "C"
