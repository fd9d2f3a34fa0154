// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/attributes.h"

#include <diwarp/version.h>
#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "compat/common/addresses.h"
#include "compat/common/boundary.h"
#include "compat/common/depth_limit.h"
#include "compat/common/export.h"
#include "compat/verbs/context.h"
#include "compat/verbs/functions.h"

// Macros of the header, which lead programs to these functions.
#undef ibv_query_port

namespace diwarp::compat {
namespace {

constexpr uint32_t kVendor = 0x646977;  // "diw": of no adapter that programs treat specially
constexpr uint32_t kVendorPart = 1;
constexpr uint8_t kWidth4x = 2;
constexpr uint8_t kSpeed10G = 4;
constexpr uint8_t kLinkUp = 5;
constexpr uint8_t kLinkDown = 3;
constexpr __be16 kDefaultPkey = 0xffff;
/// Stands for a number without a limit: there are no more numbers of queue pairs.
constexpr int kMost = 1 << 24;

int bounded(uint32_t limit) { return limit == kUnlimited ? kMost : static_cast<int>(limit); }

/// The port's attributes as they were before port_cap_flags2 was added.
constexpr size_t kCompatPortSize = offsetof(ibv_port_attr, port_cap_flags2);

Context& with_port(ibv_context* context, uint32_t port) {
  refuse_if(port != 1, EINVAL);
  return context_of(context);
}

void fill_gid(const Device& device, uint32_t index, ibv_gid& gid) {
  const auto bytes = gid_bytes(device.gid_address(index));
  std::copy(bytes.begin(), bytes.end(), gid.raw);
}

void fill_entry(const Device& device, uint32_t index, void* entry, size_t size) {
  ibv_gid_entry known{};
  fill_gid(device, index, known.gid);
  known.gid_index = index;
  known.port_num = 1;
  known.gid_type = IBV_GID_TYPE_ROCE_V2;
  std::memset(entry, 0, size);
  std::memcpy(entry, &known, std::min(size, sizeof known));
}

}  // namespace

ibv_device_attr device_attributes(Device& device) {
  const DeviceAttributes limits = device.engine().device().query();
  ibv_device_attr known{};
  to_string(version()).copy(known.fw_ver, sizeof known.fw_ver - 1);
  known.node_guid = device.guid();
  known.sys_image_guid = device.guid();
  known.max_mr_size = uint64_t{1} << 63;
  known.page_size_cap = 0xfffff000;
  known.vendor_id = kVendor;
  known.vendor_part_id = kVendorPart;
  known.max_qp = bounded(limits.max_queue_pairs);
  known.max_qp_wr = bounded(limits.max_queue_depth);
  known.max_sge = bounded(limits.max_sge);
  known.max_sge_rd = 1;
  known.max_cq = bounded(limits.max_completion_queues);
  known.max_cqe = bounded(limits.max_completion_entries);
  known.max_mr = bounded(limits.max_memory_regions);
  known.max_mw = bounded(limits.max_windows);
  known.max_pd = kMost;
  known.max_srq = bounded(limits.max_shared_receive_queues);
  known.max_srq_wr = bounded(limits.max_shared_receive_depth);
  known.max_srq_sge = bounded(limits.max_shared_receive_sge);
  known.max_qp_rd_atom = std::min<int>(limits.max_ird, kMaxDepth);
  known.max_qp_init_rd_atom = std::min<int>(limits.max_ord, kMaxDepth);
  known.max_res_rd_atom = std::min(known.max_qp, kMost / kMaxDepth) * known.max_qp_rd_atom;
  known.max_mcast_grp = known.max_total_mcast_qp_attach = kMost;
  known.max_mcast_qp_attach = known.max_qp;
  known.max_ah = kMost;
  known.atomic_cap = IBV_ATOMIC_HCA;
  known.device_cap_flags =
      IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
  known.max_pkeys = 1;
  known.phys_port_cnt = 1;
  return known;
}

ibv_port_attr port_attributes(const Device& device, uint32_t port) {
  refuse_if(port != 1, EINVAL);
  const std::vector<Address> addresses = device.addresses();
  const bool up = !addresses.empty();
  ibv_port_attr known{};
  known.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  known.max_mtu = known.active_mtu = IBV_MTU_4096;
  known.gid_tbl_len = static_cast<int>(addresses.size());
  known.max_msg_sz = uint32_t{1} << 30;
  known.pkey_tbl_len = 1;
  known.max_vl_num = 1;
  known.active_width = kWidth4x;
  known.active_speed = kSpeed10G;
  known.phys_state = up ? kLinkUp : kLinkDown;
  known.link_layer = IBV_LINK_LAYER_ETHERNET;
  known.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  return known;
}

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attributes, size_t size) {
  return errno_value([&] {
    const ibv_port_attr known = port_attributes(context_of(context).device(), port);
    std::memset(attributes, 0, size);
    std::memcpy(attributes, &known, std::min(size, sizeof known));
  });
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attributes, size_t size) {
  return errno_value([&] {
    refuse_if(input != nullptr && input->comp_mask != 0, EINVAL);
    refuse_if(size < sizeof(ibv_device_attr), EINVAL);
    ibv_device_attr_ex known{};
    known.orig_attr = device_attributes(context_of(context).device());
    known.device_cap_flags_ex = known.orig_attr.device_cap_flags;
    known.phys_port_cnt_ex = 1;
    std::memset(attributes, 0, size);
    std::memcpy(attributes, &known, std::min(size, sizeof known));
  });
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  return errno_value([&] { *attributes = device_attributes(context_of(context).device()); });
}

DIWARP_COMPAT_EXPORT int ibv_query_port(ibv_context* context, uint8_t port,
                                        _compat_ibv_port_attr* attributes) {
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attributes), kCompatPortSize);
}

DIWARP_COMPAT_EXPORT int ibv_query_gid(ibv_context* context, uint8_t port, int index,
                                       ibv_gid* gid) {
  return minus_one([&] {
    const Device& device = with_port(context, port).device();
    refuse_if(index < 0, EINVAL);
    fill_gid(device, static_cast<uint32_t>(index), *gid);
  });
}

DIWARP_COMPAT_EXPORT int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index,
                                           ibv_gid_entry* entry, uint32_t flags, size_t size) {
  return errno_value([&] {
    refuse_if(flags != 0, EINVAL);
    fill_entry(with_port(context, port).device(), index, entry, size);
  });
}

DIWARP_COMPAT_EXPORT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                                  size_t room, uint32_t flags, size_t size) {
  ssize_t count = 0;
  const int code = errno_value([&] {
    refuse_if(flags != 0, EINVAL);
    const Device& device = context_of(context).device();
    const size_t known = device.addresses().size();
    refuse_if(known > room, EINVAL);
    auto* place = reinterpret_cast<unsigned char*>(entries);
    for (uint32_t i = 0; i < known; ++i, place += size) fill_entry(device, i, place, size);
    count = static_cast<ssize_t>(known);
  });
  return code == 0 ? count : -code;
}

DIWARP_COMPAT_EXPORT int ibv_query_pkey(ibv_context* context, uint8_t port, int index,
                                        __be16* pkey) {
  return minus_one([&] {
    with_port(context, port);
    refuse_if(index != 0, EINVAL);
    *pkey = kDefaultPkey;
  });
}

DIWARP_COMPAT_EXPORT int ibv_get_pkey_index(ibv_context* context, uint8_t port, __be16 pkey) {
  const int code = errno_value([&] {
    with_port(context, port);
    refuse_if(pkey != kDefaultPkey, EINVAL);
  });
  errno = code;
  return code == 0 ? 0 : -1;
}

}  // extern "C"
