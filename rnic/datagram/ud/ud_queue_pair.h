// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "rnic/datagram/datagram_queue_pair.h"
#include "rnic/datagram/stag_miss_limit.h"
#include "rnic/datagram/ud/source_table.h"
#include "rnic/datagram/ud/ud_messages.h"
#include "rnic/datagram/ud/ud_reader.h"
#include "rnic/datagram/ud/ud_responder.h"
#include "rnic/datagram/ud/ud_transmit.h"

namespace diwarp::rnic {

/// An unreliable datagram queue pair: each segment is checked, and goes to the part that knows its
/// opcode.
class UdQueuePair final : public DatagramQueuePair {
 public:
  UdQueuePair(std::shared_ptr<ProtectionDomain> domain, const provider::QueuePairInit& init);
  ~UdQueuePair() override;

 protected:
  void take_datagram(const dgram::OpenedEnvelope& envelope, const llp::IncomingDatagram& datagram,
                     Time now) override;
  void start_msns() override;
  void forget_peers() override;
  void expire(Time now) override;
  Time next_expiry() override;

 private:
  void take_segment(const dgram::OpenedEnvelope& envelope, const llp::IncomingDatagram& datagram,
                    Time now);
  Verdict handle_segment(const rdmap::DatagramSegment& segment,
                         const dgram::OpenedEnvelope& envelope,
                         const llp::IncomingDatagram& datagram, Time now);
  Verdict dispatch(const rdmap::DatagramSegment& segment, Source& source,
                   const llp::IncomingDatagram& datagram, Time now);
  Verdict take_tagged(const rdmap::DatagramSegment& segment, Source& source,
                      const llp::IncomingDatagram& datagram, Time now);
  Verdict take_control(const dgram::OpenedEnvelope& envelope, const llp::IncomingDatagram& datagram,
                       Time now);
  Verdict take_echo(const dgram::Challenge& echo, const Address& from, uint32_t incarnation,
                    Time now);
  Verdict take_error(ConstBytes bytes, const Address& from);

  // Declared before those that refer to its members.
  SourceTable sources_;
  StagMissLimit stag_misses_;
  UdMessages messages_;
  UdReader reader_;
  UdResponder responder_;
  UdTransmit transmit_;
};

}  // namespace diwarp::rnic
