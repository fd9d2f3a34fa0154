// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// What fake_deny() steers: see control.h for what each name means.
namespace fake {

enum class Ability : unsigned char {
  atomics,
  immediate,
  memory_windows,
  srq,
  resize,
  fork,
  copy_on_fork,
  one_key,
  read_sinks,
  remote_errors,
  local_errors,
  iova,
  local_invalidate,
  told_invalidations,
  region_invalidate,
};

bool able(Ability ability);
/// Ends the process where there is no such name.
void deny(std::string_view name, bool denied);
void clear_denials();

}  // namespace fake
