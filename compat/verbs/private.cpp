// SPDX-License-Identifier: Apache-2.0
// What rdma-core's own libraries and programs take from libibverbs under versions of its own:
// symbols/ibverbs_private.txt has the names. Only ibv_devinfo and pyverbs call any of it.
#include <cerrno>

#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/verbs/context.h"

using namespace diwarp::compat;  // NOLINT: the whole file is the outer face

namespace {

constexpr int kRoceV2 = 1;  // of enum ibv_gid_type_sysfs: the GID is an IP address

}  // namespace

extern "C" {

DIWARP_COMPAT_EXPORT void diwarp_private_nothing() {}

DIWARP_COMPAT_EXPORT int diwarp_private_error() {
  errno = EOPNOTSUPP;
  return EOPNOTSUPP;
}

DIWARP_COMPAT_EXPORT void* diwarp_private_null() {
  errno = EOPNOTSUPP;
  return nullptr;
}

/// There are no files about a device: the length that would have been read is negative.
DIWARP_COMPAT_EXPORT int diwarp_private_no_file() {
  errno = ENOENT;
  return -1;
}

DIWARP_COMPAT_EXPORT extern bool diwarp_private_object;
bool diwarp_private_object = false;

DIWARP_COMPAT_EXPORT int diwarp_private_query_gid_type(ibv_context* context, uint8_t port,
                                                       unsigned index, int* type) {
  return minus_one([&] {
    refuse_if(port != 1, EINVAL);
    context_of(context).device().gid_address(index);
    *type = kRoceV2;
  });
}

DIWARP_COMPAT_EXPORT const char* diwarp_private_wr_opcode_str(int) { return "work request"; }

}  // extern "C"

#define DIWARP_ALIAS(definition, alias) asm(".symver " #definition ", " alias);
#include <private_aliases.inc>
