// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/address_handle.h"

#include <diwarp/error.h>
#include <diwarp/queue_pair.h>
#include <endian.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "compat/common/addresses.h"
#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"

namespace diwarp::compat {
namespace {

constexpr uint16_t kAnyPort = 1;  // the library checks destinations with a port

/// A link-local address is reached by the interface of the source's.
Address with_scope_of(const Address& address, const Address& source) {
  if (!is_link_local(address)) return address;
  sockaddr_storage name{};
  address.to_sockaddr(name);
  reinterpret_cast<sockaddr_in6&>(name).sin6_scope_id = source.scope_id();
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name));
}

Address source_of(const Device& device, uint32_t gid_index) {
  const std::vector<Address> own = device.addresses();
  refuse_if(gid_index >= own.size(), EINVAL);
  return own[gid_index];
}

/// Between Ethernet ports there are no LIDs: that of every port is 0, and without a GID it names
/// the port itself. So programs that know LIDs alone (qperf) work within a host.
Address own_address(const Device& device, const ibv_ah_attr& attributes) {
  refuse_if(attributes.dlid != 0, EINVAL);
  return source_of(device, 0);
}

Address checked_address(Pd& domain, const ibv_ah_attr& attributes) {
  refuse_if(attributes.port_num != 1, EINVAL);
  const Device& device = context_of(domain.context).device();
  if (attributes.is_global == 0) return own_address(device, attributes);
  const Address source = source_of(device, attributes.grh.sgid_index);
  const Address named = address_of_gid(attributes.grh.dgid.raw);
  refuse_if(named.family() != device.address().family() || named.is_any(), EINVAL);
  const Address address = with_scope_of(named, source);
  try {
    AddressHandle(domain.domain(), address.with_port(kAnyPort));
  } catch (const Error&) {
    throw Refusal(EINVAL);
  }
  return address;
}

/// The GID at which a message came; the first one where it came to a group.
uint8_t gid_index_of(const Device& device, const Address& reached) {
  if (reached.is_multicast()) return 0;
  const std::vector<Address> own = device.addresses();
  const auto found = std::find_if(own.begin(), own.end(), [&](const Address& one) {
    return std::ranges::equal(one.bytes(), reached.bytes());
  });
  refuse_if(found == own.end(), EINVAL);
  return static_cast<uint8_t>(found - own.begin());
}

}  // namespace

Ah::Ah(Pd& domain, const ibv_ah_attr& attributes)
    : ibv_ah{}, of_domain_(&domain.users), address_(checked_address(domain, attributes)) {
  context = domain.context;
  pd = &domain;
}

ibv_ah_attr reply_attributes(const Device& device, const ibv_wc& completion,
                             const ibv_grh& header) {
  refuse_if((completion.wc_flags & IBV_WC_GRH) == 0, EINVAL);
  const uint32_t word = be32toh(header.version_tclass_flow);
  ibv_ah_attr made{};
  made.is_global = 1;
  made.port_num = 1;
  made.grh.dgid = header.sgid;
  made.grh.sgid_index = gid_index_of(device, address_of_gid(header.dgid.raw));
  made.grh.flow_label = word & 0xfffff;
  made.grh.traffic_class = static_cast<uint8_t>(word >> 20);
  made.grh.hop_limit = header.hop_limit;
  return made;
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  return or_null([&]() -> ibv_ah* {
    auto* const made = new Ah(pd_of(pd), *attributes);
    LiveObjects<Ah>::add(made);
    return made;
  });
}

DIWARP_COMPAT_EXPORT int ibv_init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* completion,
                                             ibv_grh* header, ibv_ah_attr* attributes) {
  return minus_one([&] {
    refuse_if(port != 1, EINVAL);
    *attributes = reply_attributes(context_of(context).device(), *completion, *header);
  });
}

DIWARP_COMPAT_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* completion, ibv_grh* header,
                                                   uint8_t port) {
  return or_null([&]() -> ibv_ah* {
    refuse_if(port != 1, EINVAL);
    ibv_ah_attr attributes =
        reply_attributes(context_of(pd_of(pd).context).device(), *completion, *header);
    return ibv_create_ah(pd, &attributes);
  });
}

DIWARP_COMPAT_EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  return errno_value([&] {
    auto* const given = static_cast<Ah*>(ah);
    LiveObjects<Ah>::take(given);
    delete given;
  });
}

}  // extern "C"
