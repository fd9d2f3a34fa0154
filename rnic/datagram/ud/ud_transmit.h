// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "ddp/protection_context.h"
#include "ddp/scatter.h"
#include "ddp/segmentation.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/size_refusals.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

class RecordTable;
class UdReader;

/// The send queue of a UD queue pair: cuts Sends and Write-Records into datagrams, hands Reads to
/// the reader, and does what needs nothing sent.
class UdTransmit final : public DatagramSource {
 public:
  UdTransmit(const ddp::ProtectionContext& protection, RecordTable& records, SendQueue& sends,
             UdReader& reader)
      : protection_(protection), records_(records), sends_(sends), reader_(reader) {}

  /// Begins anew, with this MSN.
  void set_first_msn(uint32_t first_msn);

  void fill(DatagramBuilder& builder, Time now) override;
  void sent(const DatagramTag& tag) override;
  void refused(const DatagramTag& tag, int error) override;

 private:
  /// One counter for each space of MSNs that messages are told apart by.
  struct Msns {
    uint32_t send = 0;
    uint32_t record = 0;
    uint32_t& of(WrOpcode opcode) { return rdmap::is_record(opcode) ? record : send; }
  };

  const SendEntry* oldest_message(Time now);
  bool process_request(SendEntry& entry, Time now);
  bool begin_read(SendEntry& entry, Time now);
  bool can_send(const SendEntry& entry) const;
  bool add_message(DatagramBuilder& builder, const SendEntry& entry, uint32_t msn, uint64_t offset);
  bool add_segment(DatagramBuilder& builder, const SendEntry& entry, rdmap::DatagramSegment& header,
                   const ddp::Segment& segment);
  void end_oldest(WcStatus status, uint32_t vendor_error);

  const ddp::ProtectionContext& protection_;
  RecordTable& records_;
  SendQueue& sends_;
  UdReader& reader_;
  Msns next_;                   // of the oldest message that is not done
  uint64_t offset_ = 0;         // how much of it has been sent
  SizeRefusals size_refusals_;  // since something of it was sent
  ddp::SgeCursor cursor_;
};

}  // namespace diwarp::rnic
