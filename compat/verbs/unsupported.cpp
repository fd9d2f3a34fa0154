// SPDX-License-Identifier: Apache-2.0
// The functions of libibverbs that do nothing here, or are refused. No header declares them in this
// file, since those that Debian 12 does not have yet stand here as well: their arguments are not
// looked at.
#include <cerrno>

#include "compat/common/export.h"
#include "compat/common/log.h"

using diwarp::compat::log_unsupported;

#define DIWARP_REFUSED_POINTER(name)      \
  DIWARP_COMPAT_EXPORT void* name(void) { \
    errno = log_unsupported(#name);       \
    return nullptr;                       \
  }
#define DIWARP_REFUSED_VALUE(name) \
  DIWARP_COMPAT_EXPORT int name(void) { return log_unsupported(#name); }
#define DIWARP_REFUSED_MINUS_ONE(name)  \
  DIWARP_COMPAT_EXPORT int name(void) { \
    errno = log_unsupported(#name);     \
    return -1;                          \
  }
#define DIWARP_NOTHING(name) \
  DIWARP_COMPAT_EXPORT void name(void) {}
#define DIWARP_ZERO(name) \
  DIWARP_COMPAT_EXPORT int name(void) { return 0; }

extern "C" {

// There are no Ethernet addresses to resolve.
DIWARP_REFUSED_VALUE(ibv_resolve_eth_l2_from_gid)

// Memory of other kinds than the process's own.
DIWARP_REFUSED_MINUS_ONE(ibv_rereg_mr)
DIWARP_REFUSED_POINTER(ibv_reg_dmabuf_mr)
DIWARP_REFUSED_POINTER(ibv_reg_mr_ex)
DIWARP_REFUSED_POINTER(ibv_alloc_dmah)
DIWARP_REFUSED_VALUE(ibv_dealloc_dmah)
DIWARP_REFUSED_MINUS_ONE(ibv_dm_export_dmabuf_fd)
DIWARP_REFUSED_POINTER(ibv_alloc_buf)
DIWARP_REFUSED_VALUE(ibv_free_buf)
DIWARP_REFUSED_POINTER(ibv_reg_buf_mr)
DIWARP_REFUSED_MINUS_ONE(ibv_export_buf_dmabuf_fd)

// Objects of other processes.
DIWARP_REFUSED_POINTER(ibv_import_device)
DIWARP_REFUSED_POINTER(ibv_import_pd)
DIWARP_NOTHING(ibv_unimport_pd)
DIWARP_REFUSED_POINTER(ibv_import_mr)
DIWARP_NOTHING(ibv_unimport_mr)
DIWARP_REFUSED_POINTER(ibv_import_dm)
DIWARP_NOTHING(ibv_unimport_dm)

// Connection establishment with extensions of vendors'.
DIWARP_REFUSED_VALUE(ibv_query_ece)
DIWARP_REFUSED_VALUE(ibv_set_ece)

// Counters of completions.
DIWARP_REFUSED_VALUE(_ibv_query_comp_cntr_caps)
DIWARP_REFUSED_POINTER(ibv_create_comp_cntr)
DIWARP_REFUSED_VALUE(ibv_destroy_comp_cntr)
DIWARP_REFUSED_VALUE(ibv_inc_comp_cntr)
DIWARP_REFUSED_VALUE(ibv_inc_err_comp_cntr)
DIWARP_REFUSED_VALUE(ibv_qp_attach_comp_cntr)
DIWARP_REFUSED_VALUE(ibv_read_comp_cntr)
DIWARP_REFUSED_VALUE(ibv_read_err_comp_cntr)
DIWARP_REFUSED_VALUE(ibv_set_comp_cntr)
DIWARP_REFUSED_VALUE(ibv_set_err_comp_cntr)
DIWARP_REFUSED_VALUE(ibv_query_port_speed)

// Nothing is to be done: memory is the process's own, before and after a fork.
DIWARP_ZERO(ibv_fork_init)
DIWARP_ZERO(ibv_dontfork_range)
DIWARP_ZERO(ibv_dofork_range)
/// IBV_FORK_UNNEEDED
DIWARP_COMPAT_EXPORT int ibv_is_fork_initialized(void) { return 2; }

// Between rdma-core's libraries and the kernel.
DIWARP_NOTHING(ibv_register_driver)
DIWARP_NOTHING(ibv_copy_ah_attr_from_kern)
DIWARP_NOTHING(ibv_copy_path_rec_from_kern)
DIWARP_NOTHING(ibv_copy_path_rec_to_kern)
DIWARP_NOTHING(ibv_copy_qp_attr_from_kern)
DIWARP_COMPAT_EXPORT const char* ibv_get_sysfs_path(void) { return "/sys"; }
DIWARP_COMPAT_EXPORT int ibv_read_sysfs_file(void) {
  errno = ENOENT;
  return -1;
}

}  // extern "C"
