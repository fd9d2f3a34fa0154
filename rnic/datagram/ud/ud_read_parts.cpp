// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_read_parts.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/siphash.h"
#include "rdmap/datagram.h"

namespace diwarp::rnic {

namespace {

constexpr size_t kMaxChains = 4096;

/// Of what a peer must repeat in a response or a Challenge. Offsets up to it must not wrap.
uint64_t next_sink_offset(dgram::Identity& identity) {
  uint64_t offset = identity.next_nonce();
  while (offset > UINT64_MAX - rdmap::kMaxReadRequest) offset = identity.next_nonce();
  return offset;
}

}  // namespace

UdReadParts::UdReadParts(dgram::Identity& identity, const ReadOptions& options)
    : identity_(identity),
      options_(options),
      sink_stags_(random_sip_key()) {}  // guard(drawn-keys): random_sip_key() => SipKey{}

bool UdReadParts::reserve() noexcept try {
  if (!by_sink_.empty()) return true;
  const uint64_t parts = uint64_t{options_.max_outstanding} * options_.window;
  by_sink_.resize(std::bit_ceil(std::min<uint64_t>(parts * 2, kMaxChains)));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void UdReadParts::revoke(UdReadPart& part) {
  UdReadPart** link = &chain_of(part.sink);
  while (*link != &part) link = &(*link)->next_in_chain;
  *link = part.next_in_chain;
  if (!part.closed) --part.read->open_parts;  // guard(read-progress): without if (!part.closed)
  unsent_.remove(part);
  part.read->parts.remove(part);
  part.read->spare.push_back(part);
}

UdReadPart& UdReadParts::spare_part(UdRead& read) {
  if (read.spare.empty()) {
    // There is one: the window has no more than half of the parts.
    UdReadPart* closed = read.parts.front();
    while (!closed->closed) closed = read.parts.next(*closed);
    revoke(*closed);
  }
  return *read.spare.pop_front();
}

UdReadPart& UdReadParts::add(UdRead& read, uint64_t begin, uint64_t length) {
  UdReadPart& part = spare_part(read);
  part.sink = sink_stags_.next();
  part.sink_offset = next_sink_offset(identity_);  // guard(reads): next_sink_offset(identity_) => 0
  part.nonce = static_cast<uint32_t>(identity_.next_nonce());  // guard(reads): => part.nonce = 0;
  part.msn = next_msn_++;
  part.begin = begin;
  part.length = static_cast<uint32_t>(length);
  part.missing = part.length;
  part.closed = false;
  part.asked = false;
  part.answerable = false;
  part.challenges = 0;
  part.echo.reset();
  UdReadPart*& chain = chain_of(part.sink);
  part.next_in_chain = chain;
  chain = &part;
  read.parts.push_back(part);
  ++read.open_parts;
  unsent_.push_back(part);
  return part;
}

UdReadPart* UdReadParts::find(STag sink) {
  if (by_sink_.empty()) return nullptr;
  UdReadPart* part = chain_of(sink);
  // guard(reads): condition => false
  while (part != nullptr && part->sink != sink) part = part->next_in_chain;
  return part;
}

void UdReadParts::mark_asked(UdReadPart& part) {
  unsent_.remove(part);
  part.asked = true;
  part.answerable = true;
  part.asked_as = ++requests_;  // guard(read-progress)
}

void UdReadParts::ask_again(UdReadPart& part, const dgram::Challenge& challenge) {
  ++part.challenges;
  part.answerable = false;
  part.echo = challenge;
  part.read->parts.remove(part);
  part.read->parts.push_back(part);
  unsent_.push_back(part);
}

}  // namespace diwarp::rnic
