// SPDX-License-Identifier: Apache-2.0
#include "fuzz/datagram_memory.h"

#include <algorithm>

namespace diwarp::fuzz {

namespace {

constexpr Access kRemote = Access::local_write | Access::remote_write | Access::remote_read;
constexpr size_t kSlotted = DatagramRegion::kSlots * DatagramRegion::kSlotBytes;

}  // namespace

std::optional<size_t> DatagramRegion::free_slot() const {
  const auto found = std::ranges::find(used, false);
  if (found == used.end()) return std::nullopt;
  return static_cast<size_t>(found - used.begin());
}

void DatagramRegion::check_slots(const char* message) {
  memory.check_guards();
  for (size_t i = 0; i < kSlots; ++i)
    if (!used[i] || !region) memory.check(i * kSlotBytes, kSlotBytes, message);
}

DatagramMemory::DatagramMemory(const ProtectionDomain& pd, const ProtectionDomain& other_pd)
    : pd_(pd),
      receives_{{kSlotted, 11}, Access::local_write},
      sends_{{kSlotted, 23}, Access::none},
      reads_{{kSlotted, 37}, Access::local_write},
      open_{{1024, 41}, kRemote | Access::remote_invalidate, kBase},
      read_only_{{512, 53}, Access::remote_read, kBase},
      closed_{{512, 67}, Access::local_write, kBase},
      foreign_{{512, 71}, kRemote, kBase} {
  for (DatagramRegion* one : {&receives_, &sends_, &reads_, &open_, &read_only_, &closed_})
    register_region(*one, pd);
  register_region(foreign_, other_pd);
}

void DatagramMemory::register_region(DatagramRegion& region, const ProtectionDomain& pd) {
  region.region.emplace(pd, region.memory.bytes(), region.access, region.base);
}

void DatagramMemory::toggle_region(uint8_t which) {
  DatagramRegion* const all[] = {&open_, &reads_, &receives_, &sends_};
  DatagramRegion& chosen = *all[which % 4];
  if (!chosen.region) return register_region(chosen, pd_);
  chosen.region.reset();
  chosen.memory.accept();
}

void DatagramMemory::restore_receives() {
  if (!receives_.region) register_region(receives_, pd_);
}

void DatagramMemory::free_slots() {
  for (DatagramRegion* one : {&receives_, &sends_, &reads_}) one->used.fill(false);
  for (DatagramRegion* one : {&receives_, &reads_}) one->memory.accept();
}

STag DatagramMemory::stag(uint8_t which) const {
  const DatagramRegion* const all[] = {&open_,   &open_,    &open_,  &read_only_,
                                       &closed_, &foreign_, &reads_, &receives_};
  const DatagramRegion& chosen = *all[which % 8];
  return chosen.region ? chosen.region->rkey() : 1;
}

/// Open memory may change while its STag is valid.
void DatagramMemory::check_open() {
  open_.memory.check_guards();
  const bool valid = open_.region && open_.region->valid();
  if (!valid && !open_.was_valid) open_.memory.check("Memory without a valid STag was written");
  open_.memory.accept();
  open_.was_valid = valid;
}

void DatagramMemory::check() {
  receives_.check_slots("Memory of a receive that is not posted was written");
  reads_.check_slots("Memory of a Read that is over was written");
  sends_.memory.check("Memory to be sent was written");
  read_only_.memory.check("Memory that is read only was written");
  closed_.memory.check("Memory without remote rights was written");
  foreign_.memory.check("Memory of another protection domain was written");
  for (const DatagramRegion* one : {&sends_, &read_only_, &closed_, &foreign_})
    one->memory.check_guards();
  check_open();
}

}  // namespace diwarp::fuzz
