// SPDX-License-Identifier: Apache-2.0
// The functions of librdmacm that are refused. No header declares them in this file, since those
// that Debian 12 does not have yet stand here as well: their arguments are not looked at.
#include <poll.h>
#include <sys/select.h>

#include <cerrno>

#include "compat/common/export.h"
#include "compat/common/log.h"

using diwarp::compat::log_unsupported;

#define DIWARP_REFUSED(name)             \
  DIWARP_COMPAT_EXPORT long name(void) { \
    errno = log_unsupported(#name);      \
    return -1;                           \
  }

extern "C" {

DIWARP_REFUSED(rdma_reject_ece)
DIWARP_REFUSED(rdma_get_remote_ece)
DIWARP_REFUSED(rdma_set_local_ece)
DIWARP_REFUSED(rdma_query_addrinfo)
DIWARP_REFUSED(rdma_resolve_addrinfo)
DIWARP_REFUSED(rdma_write_cm_event)

// rsockets: sockets over RDMA.
DIWARP_REFUSED(rsocket)
DIWARP_REFUSED(rbind)
DIWARP_REFUSED(rlisten)
DIWARP_REFUSED(raccept)
DIWARP_REFUSED(rconnect)
DIWARP_REFUSED(rshutdown)
DIWARP_REFUSED(rclose)
DIWARP_REFUSED(rrecv)
DIWARP_REFUSED(rrecvfrom)
DIWARP_REFUSED(rrecvmsg)
DIWARP_REFUSED(rsend)
DIWARP_REFUSED(rsendto)
DIWARP_REFUSED(rsendmsg)
DIWARP_REFUSED(rread)
DIWARP_REFUSED(rreadv)
DIWARP_REFUSED(rwrite)
DIWARP_REFUSED(rwritev)
DIWARP_REFUSED(rgetpeername)
DIWARP_REFUSED(rgetsockname)
DIWARP_REFUSED(rsetsockopt)
DIWARP_REFUSED(rgetsockopt)
DIWARP_REFUSED(rfcntl)
DIWARP_REFUSED(riomap)
DIWARP_REFUSED(riounmap)
DIWARP_REFUSED(riowrite)
DIWARP_REFUSED(repoll_create)
DIWARP_REFUSED(repoll_ctl)
DIWARP_REFUSED(repoll_wait)

// Without rsockets every descriptor is an ordinary one.
DIWARP_COMPAT_EXPORT int rpoll(pollfd* descriptors, nfds_t count, int timeout) {
  return ::poll(descriptors, count, timeout);
}
DIWARP_COMPAT_EXPORT int rselect(int count, fd_set* read, fd_set* write, fd_set* except,
                                 timeval* timeout) {
  return ::select(count, read, write, except, timeout);
}

}  // extern "C"
