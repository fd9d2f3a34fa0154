// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/intrusive_list.h"
#include "dgram/identity.h"
#include "diwarp/datagram_options.h"
#include "diwarp/types.h"
#include "rnic/datagram/sink_stags.h"
#include "rnic/datagram/ud/ud_read.h"

namespace diwarp::rnic {

/// The parts in which the Reads of a UD queue pair ask for bytes: gives each the names by which its
/// response is known, finds it by them, and keeps those whose request is to be sent. UdReader owns
/// it; the parts lie in their Reads. With the baton.
///
/// The request for a part names its sink by an STag of its own, which is good for that part alone.
/// Once the part is revoked it names nothing ever again, so that late and forged responses touch
/// nothing.
class UdReadParts {
 public:
  using Unsent = IntrusiveList<UdReadPart, UdUnsentTag>;

  /// `options` live as long as this.
  UdReadParts(dgram::Identity& identity, const ReadOptions& options);

  /// Begins anew, with this MSN.
  void start(uint32_t first_msn) { next_msn_ = first_msn; }

  /// Before the first add(). False where there is no memory.
  bool reserve() noexcept;
  /// A part of `read` whose request is to be sent. Fewer parts of the Read are open than the window
  /// has, so that one is spare or closed.
  UdReadPart& add(UdRead& read, uint64_t begin, uint64_t length);
  /// The part's STag names nothing any more, and never will again.
  void revoke(UdReadPart& part);
  /// The part with this sink, or null.
  UdReadPart* find(STag sink);

  /// Those whose request is to be sent, in the order in which it is.
  Unsent& unsent() { return unsent_; }
  bool has_unsent() const { return !unsent_.empty(); }
  /// Its request was sent.
  void mark_asked(UdReadPart& part);
  /// Has the Challenge echoed and the request sent again.
  void ask_again(UdReadPart& part, const dgram::Challenge& challenge);

 private:
  UdReadPart& spare_part(UdRead& read);
  /// The chain that the part with this STag is in, if there is one.
  UdReadPart*& chain_of(STag sink) { return by_sink_[sink & (by_sink_.size() - 1)]; }

  dgram::Identity& identity_;
  const ReadOptions& options_;
  SinkStags sink_stags_;
  uint32_t next_msn_ = 0;
  uint64_t requests_ = 0;             // sent
  std::vector<UdReadPart*> by_sink_;  // chains, by the STag's low bits
  Unsent unsent_;
};

}  // namespace diwarp::rnic
