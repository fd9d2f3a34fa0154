// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fuzz/guarded_memory.h"
#include "fuzz/input.h"
#include "fuzz/request_ledger.h"

/// The objects of the verbs that a run has, each with what the run knows of it.
namespace diwarp::fuzz {

/// Tagged offset of the first byte of each region.
inline constexpr uint64_t kVerbsBase = 0x10000;

/// A region with its memory, which goes when the region goes: AddressSanitizer sees any use after
/// that.
struct VerbsRegion {
  VerbsRegion(const ProtectionDomain& pd, size_t size, Access access, uint32_t pattern_seed)
      : rights(access),
        seed(pattern_seed),
        memory(size, seed),
        mr(std::in_place, pd, memory.bytes(), access, kVerbsBase) {}
  ~VerbsRegion() {
    mr.reset();
    check();
  }
  VerbsRegion(const VerbsRegion&) = delete;
  VerbsRegion& operator=(const VerbsRegion&) = delete;

  bool writable() const { return has(rights, Access::local_write); }
  /// Guards, and where nothing may write all of it.
  void check() const {
    memory.check_guards();
    if (!writable()) memory.check_unchanged("memory that may not be written was written");
  }

  const Access rights;
  const uint32_t seed;
  GuardedMemory memory;
  std::optional<MemoryRegion> mr;
};

/// A protection domain with memory to send from and to receive into. Each byte of that is used
/// once.
struct VerbsDomain {
  static constexpr size_t kBytes = 32768;

  VerbsDomain(unsigned on, const Device& host)
      : device(on),
        pd(host),
        memory(kBytes, 20),
        mr(std::in_place, pd, memory.bytes(), Access::local_write, kVerbsBase),
        key(mr->lkey()) {}
  ~VerbsDomain() {
    memory.check_guards();
    if (left) require(std::ranges::equal(*left, memory.bytes()), "deregistered memory was written");
  }
  VerbsDomain(const VerbsDomain&) = delete;
  VerbsDomain& operator=(const VerbsDomain&) = delete;

  /// The next bytes; nothing where they are used up.
  std::optional<size_t> take(size_t length) {
    if (length > kBytes - used) return std::nullopt;
    const size_t at = used;
    used += length;
    return at;
  }
  Sge sge(size_t at, size_t length) {
    return {memory.bytes().data() + at, static_cast<uint32_t>(length), key};
  }
  /// From now on nothing may write the memory.
  void deregister() {
    if (!mr) return;
    mr.reset();
    left.emplace(memory.bytes().begin(), memory.bytes().end());
    used = kBytes;
  }

  const unsigned device;
  ProtectionDomain pd;
  GuardedMemory memory;
  std::optional<MemoryRegion> mr;
  const STag key;
  size_t used = 0;
  std::optional<std::vector<std::byte>> left = {};  // as it was when it was deregistered
};

/// A receive or a Read that is posted: where its bytes go, and what they have to be.
struct VerbsSink {
  std::shared_ptr<VerbsDomain> domain;  ///< keeps the memory
  size_t at = 0;
  std::optional<std::vector<std::byte>> expected = {};
};

/// One queue's ledger. It outlives the queue: completions may still lie in a completion queue.
struct VerbsLedger {
  explicit VerbsLedger(const char* name) : open(name) {}
  RequestLedger open;
  bool ordered = true;  ///< requests complete in the order of posting
  std::map<uint64_t, VerbsSink> sinks;
};

struct VerbsCq {
  unsigned device = 0;
  uint64_t serial = 0;  ///< of the completion queue, unique in the run
  CompletionQueue cq;
};

struct VerbsSrq {
  std::shared_ptr<VerbsDomain> domain;
  SharedReceiveQueue srq;
  std::shared_ptr<VerbsLedger> ledger;
  uint64_t ledger_number = 0;
};

struct VerbsQp {
  uint32_t serial = 0;  ///< unique in the run
  QpType type = QpType::rc;
  std::shared_ptr<VerbsDomain> domain;
  std::shared_ptr<VerbsSrq> srq;
  uint64_t send_cq = 0, recv_cq = 0;  ///< serials
  uint64_t ledgers = 0;               ///< number of the sends' ledger; the receives' is the next
  bool signal_all = false;
  uint32_t peer = 0;  ///< RC: the queue pair that it is connected with
  std::optional<QueuePair> qp;
};

}  // namespace diwarp::fuzz
