// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace diwarp::bridge {

/// What drivers differ in and no attribute of the device tells.
struct DriverTraits {
  /// A Read places its data only into memory that peers may write to (RFC 5040 section 5.2: the
  /// responder's segments are tagged, as a Write's are).
  bool reads_need_remote_write = true;
  /// A region's tagged offsets may start elsewhere than at its address.
  bool chosen_bases = true;
  /// Requests of user space may invalidate STags.
  bool local_invalidate = true;
  /// Immediate data, of which no attribute tells either: a device that refuses them when they are
  /// posted gives unsupported_operation.
  bool immediate_data = true;
  /// A receive's completion tells of a Send with Invalidate.
  bool told_invalidations = true;
  /// Completions tell local errors apart, and events a connection that failed from one that ended.
  bool exact_errors = true;
  /// A completion queue may be armed for solicited completions alone.
  bool solicited_events = true;
  /// Peers read only memory with the right to.
  bool read_rights = true;
  /// Requests that are sent on a connection that has ended raise SIGPIPE in the calling thread.
  bool raises_sigpipe = false;
};

/// Linux's soft-iWARP driver.
inline constexpr uint32_t kSiwVendor = 0x626d74;
/// Diwarp's own libraries in rdma-core's place (docs/drop-in.md).
inline constexpr uint32_t kDropInVendor = 0x646977;

inline DriverTraits traits_of(uint32_t vendor) {
  if (vendor == kSiwVendor)
    return {.reads_need_remote_write = false,
            .chosen_bases = false,
            .local_invalidate = false,
            .immediate_data = false,
            .told_invalidations = false,
            .exact_errors = false,
            .solicited_events = false,
            .read_rights = false,
            .raises_sigpipe = true};
  if (vendor == kDropInVendor) return {.reads_need_remote_write = false, .immediate_data = false};
  return {};
}

}  // namespace diwarp::bridge
