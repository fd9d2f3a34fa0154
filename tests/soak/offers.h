// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "soak/posting.h"
#include "soak/process.h"

namespace soak {

/// Memory that is lent to peers, and taken back while they use it.
class Offers {
 public:
  Offers(Process& process, Posting& posting) : process_(process), posting_(posting) {}

  /// Ends those whose time is over, and makes others.
  void keep();
  /// Null where there is none.
  Offer* find(uint64_t id);
  /// The request to bind the window of this offer is over.
  void window_bound(uint64_t id, bool success);
  /// A window is good for the connection that it was bound over alone.
  void end_windows(uint32_t remote);
  /// The bytes that the peer told of are there, and nothing else has changed.
  void check_told(const Offer& offer);

 private:
  void make();
  bool has_stream(uint32_t remote) const;
  void bind_window(Offer& offer);
  void announce(const Offer& offer);
  void ask_back(Offer& offer);
  void end(Offer& offer);
  void check_untold(const Offer& offer);

  Process& process_;
  Posting& posting_;
};

}  // namespace soak
