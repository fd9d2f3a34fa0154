// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/connect_options.h>
#include <infiniband/verbs.h>

#include "compat/verbs/device.h"

/// What ibv_modify_qp() takes for RC queue pairs.
namespace diwarp::compat {

/// Whether these attributes name a peer, without the connection manager.
inline bool names_peer(int mask) { return (mask & (IBV_QP_AV | IBV_QP_DEST_QPN)) != 0; }

/// Throws Refusal(EINVAL) for attributes that no RC queue pair has, or values that are none.
void check_rc_attributes(const ibv_qp_attr& attributes, int mask);

/// The peer that attributes for RTR name; it may come at any time. Without a GID it is on this
/// host, as LID 0 is every port's own. Throws Refusal: EINVAL, or ENODATA for a GID index that is
/// not there.
NamedPeer named_peer(const ibv_qp_attr& attributes, const Device& device);

/// Copies the attributes of the mask, so that ibv_query_qp() can tell them.
void merge_attributes(ibv_qp_attr& kept, const ibv_qp_attr& given, int mask);

}  // namespace diwarp::compat
