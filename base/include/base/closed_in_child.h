// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace diwarp {

/// While it lives, forked children close this descriptor before fork() returns there. The
/// descriptor has to outlive it. Throws std::bad_alloc.
class ClosedInChild {
 public:
  explicit ClosedInChild(int descriptor);
  ~ClosedInChild();
  ClosedInChild(const ClosedInChild&) = delete;
  ClosedInChild& operator=(const ClosedInChild&) = delete;

 private:
  struct Place;
  struct Places;

  Place& place_;
};

}  // namespace diwarp
