// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

namespace diwarp::hybrid {

enum class Half : uint8_t {
  software,  ///< queue pairs over datagrams
  hardware,  ///< reliable connections
};

/// The two objects that make up one of a hybrid device.
template <class Object>
struct Halves {
  std::shared_ptr<Object> software;
  std::shared_ptr<Object> hardware;

  const std::shared_ptr<Object>& of(Half half) const {
    return half == Half::software ? software : hardware;
  }
};

}  // namespace diwarp::hybrid
