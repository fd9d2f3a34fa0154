/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How tests steer the fake rdma-core. The functions are in the fake libibverbs.so.1, at the version
 * FAKE_RDMA_CORE_1; a test finds them with dlsym().
 *
 * The environment variable FAKE_RDMA_CORE_DEVICES lists the devices, by default
 * "fake0=127.0.0.1". More stand there separated by blanks, and a device may have suffixes:
 * "fake0=127.0.0.1 fake1=127.0.0.2:down fake2=127.0.0.3:infiniband fake3=[::1]". It is read when
 * the devices are first asked for, and again by fake_clear().
 *
 * FAKE_RDMA_CORE_DENY names capabilities that are denied from the start, separated by blanks: what
 * fake_deny() takes. It is read when one is first asked for, and again by fake_clear().
 *
 * An unknown name of a function, capability or device ends the process with a message.
 */

/* The call number `after` of the function (0: the next) fails with this errno. The functions that
 * verbs.h calls through the context count by their names there, "ibv_post_send" or "post_send". A
 * function has at most one such call. Functions that cannot tell an error do not fail. */
void fake_fail(const char* function, int after, int error);

/* Each call of the function raises this signal in the calling thread from now on (0: none). */
void fake_signal(const char* function, int signal);

/* How often the function was called since fake_clear(), failed calls included. */
int fake_calls(const char* function);

/* Back to the start: no call fails or raises a signal, nothing is counted, removed devices are
 * there again as new ones, ports and denied capabilities are as the environment has them. Objects
 * stay as they are. */
void fake_clear(void);

/* What the devices cannot do from now on (or can again), in ibv_query_device() and when it is used:
 *
 *   "atomics"         no atomics: EINVAL when posted
 *   "immediate"       no immediate data: EINVAL when posted
 *   "memory-windows"  none: EOPNOTSUPP
 *   "srq"             no shared receive queues: EOPNOTSUPP
 *   "resize"          completion queues keep their size: ENOSYS
 *   "fork"            ibv_fork_init() answers ENOSYS
 *   "copy-on-fork"    the kernel is an old one: programs that fork need ibv_fork_init(), which must
 *                     come before the first region (EINVAL)
 *
 * Some names stand for an ease that not all devices have:
 *
 *   "two-keys"        denied: regions have an lkey that differs from the rkey. By default both are
 *                     one, as with most iWARP adapters
 *   "read-sinks"      denied: regions without IBV_ACCESS_REMOTE_WRITE as targets of Reads, which
 *                     then fail with IBV_WC_LOC_PROT_ERR: so do iWARP adapters that place Read
 *                     Responses like Writes. Denied from the start; fake_deny("read-sinks", 0) takes
 *                     them, as Linux's siw does
 *   "remote-errors"   denied: a Read or an atomic that the peer refused completes as flushed
 *   "local-errors"    denied: a request of the send queue that fails here completes with
 *                     IBV_WC_LOC_QP_OP_ERR, whatever is wrong
 *   "iova"            denied: a region's addresses count from where it is, whatever the iova
 *   "local-invalidate"    denied: IBV_WR_LOCAL_INV is refused, EINVAL
 *   "region-invalidate"   denied: a peer can invalidate windows alone, and what names a region ends
 *                     the connection. Linux's iWARP drivers let peers invalidate any region
 *   "told-invalidations"  denied: no IBV_WC_WITH_INV, though the key was invalidated
 */
void fake_deny(const char* capability, int denied);

/* The next region that is registered gets this key, or is refused (EINVAL) where it is in use;
 * further calls are for the regions after it. fake_clear() forgets them. */
void fake_choose_key(unsigned key);

/* An asynchronous event (enum ibv_event_type) at each open context of the device. Events of queue
 * pairs, completion queues and shared receive queues come once for each that there is.
 * IBV_EVENT_PORT_ERR and IBV_EVENT_PORT_ACTIVE change the port's state. */
void fake_raise(const char* device, int ibv_event_type);

/* The device goes away: it is listed no more, its ids get RDMA_CM_EVENT_DEVICE_REMOVAL, its
 * contexts IBV_EVENT_DEVICE_FATAL, its queue pairs go to error and flush, and nothing can be
 * created on it (EIO). What is there can be destroyed. */
void fake_remove(const char* device);

/* Objects of all kinds that are there, unacknowledged events of rdma_cm and lists of devices
 * included. Contexts that librdmacm opens for itself stay open, and do not count. */
int fake_objects(void);

#ifdef __cplusplus
}
#endif
