// SPDX-License-Identifier: Apache-2.0
#include "fuzz/rc_memory.h"

namespace diwarp::fuzz {
namespace {

void check_lent(const GuardedMemory& memory) {
  const size_t behind = kLentAt + kLent;
  require(memory.unchanged(0, kLentAt) && memory.unchanged(behind, memory.size() - behind),
          "memory beside what was lent to the peer was written");
}

constexpr size_t kBlock = 512;  // what is unchanged is passed in such steps

/// Calls for each byte of a block in which something was changed.
template <class Check>
void for_each_doubtful(const GuardedMemory& memory, Check&& check) {
  for (size_t block = 0; block < memory.size(); block += kBlock) {
    if (memory.unchanged(block, kBlock)) continue;
    for (size_t at = block; at < block + kBlock; ++at) check(at);
  }
}

void check_inbox(const GuardedMemory& inbox, const std::vector<bool>& posted) {
  for_each_doubtful(inbox, [&](size_t at) {
    require(posted[at] || inbox.unchanged(at, 1), "memory that no receive named was written");
  });
}

void check_sink(const GuardedMemory& sink) {
  for_each_doubtful(sink, [&](size_t at) {
    require(sink.unchanged(at, 1) ||
                is_pattern(sink.bytes().subspan(at, 1), kResponseSeed, kSinkBase + at),
            "a Read brought bytes that the peer did not send there");
  });
}

}  // namespace

void RcMemory::check(bool sinks_known) const {
  for (const GuardedMemory* memory : {&open, &bound, &fast, &inbox, &sink, &results})
    memory->check_guards();
  read_only.check_unchanged("memory that peers may only read was written");
  closed.check_unchanged("memory without rights for peers was written");
  foreign.check_unchanged("memory of another protection domain was written");
  outbox.check_unchanged("memory of Sends was written");
  check_lent(bound);
  check_lent(fast);
  check_inbox(inbox, receives);
  if (sinks_known) check_sink(sink);
}

}  // namespace diwarp::fuzz
