// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_stag_limit.h"

namespace diwarp::rnic {

void RdStagLimit::note(RdPeer& peer, bool rightly, Time now) {
  peer.turn.set_first_in_line(false);
  if (rightly)
    limit_.hit(peer.host.stags, now);
  else
    limit_.missed(peer.stag_misses, peer.host.stags, now);
}

void RdStagLimit::note_verdict(RdPeer& peer, const Verdict& verdict, Time now) {
  // guard(rd-guesses): without || !verdict.drop
  if (verdict.fault || !verdict.drop) note(peer, !verdict.fault, now);
}

}  // namespace diwarp::rnic
