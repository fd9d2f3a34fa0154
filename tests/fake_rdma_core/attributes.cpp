// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/attributes.h"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fake_rdma_core/capabilities.h"
#include "fake_rdma_core/failure.h"
#include "fake_rdma_core/limits.h"

namespace fake {
namespace {

// Physical states of a port, as ibv_port_attr::phys_state has them.
constexpr uint8_t kDisabled = 3;
constexpr uint8_t kLinkUp = 5;

void add_limits(ibv_device_attr& attributes) {
  attributes.max_mr_size = UINT64_MAX;
  attributes.page_size_cap = 4096;
  attributes.max_qp = attributes.max_cq = attributes.max_mr = attributes.max_pd = kMaxObjects;
  attributes.max_qp_wr = kMaxWr;
  attributes.max_sge = kMaxSge;
  attributes.max_sge_rd = 1;
  attributes.max_cqe = kMaxCqe;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = kMaxRdAtomic;
  attributes.max_res_rd_atom = kMaxRdAtomic;
}

}  // namespace

ibv_device_attr device_attributes(const Adapter& adapter) {
  ibv_device_attr attributes = {};
  std::strcpy(attributes.fw_ver, "0.0.0");
  attributes.node_guid = attributes.sys_image_guid = htobe64(adapter.guid());
  attributes.vendor_id = adapter.spec.vendor;
  attributes.vendor_part_id = 1;
  add_limits(attributes);
  attributes.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS;
  attributes.atomic_cap = able(Ability::atomics) ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  if (able(Ability::memory_windows)) {
    attributes.device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    attributes.max_mw = kMaxObjects;
  }
  if (able(Ability::srq)) {
    attributes.max_srq = kMaxObjects;
    attributes.max_srq_wr = kMaxWr;
    attributes.max_srq_sge = kMaxSge;
  }
  attributes.max_pkeys = 1;
  attributes.phys_port_cnt = 1;
  return attributes;
}

ibv_port_attr port_attributes(const Adapter& adapter, int port) {
  refuse_if(port != 1, EINVAL);
  ibv_port_attr attributes = {};
  attributes.state = adapter.port_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes.max_mtu = IBV_MTU_4096;
  attributes.active_mtu = IBV_MTU_1024;
  attributes.gid_tbl_len = 1;
  attributes.pkey_tbl_len = 1;
  attributes.max_msg_sz = kMaxMessage;
  attributes.phys_state = adapter.port_up ? kLinkUp : kDisabled;
  attributes.link_layer =
      adapter.spec.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  return attributes;
}

ibv_gid gid_of(const Adapter& adapter, int port, int index) {
  refuse_if(port != 1 || index != 0, EINVAL);
  ibv_gid gid = {};
  const auto bytes = adapter.address.bytes();
  if (bytes.size() == 4) gid.raw[10] = gid.raw[11] = 0xff;
  std::copy(bytes.begin(), bytes.end(), std::end(gid.raw) - bytes.size());
  return gid;
}

}  // namespace fake
