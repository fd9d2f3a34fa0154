// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diwarp/error.h"
#include "diwarp/types.h"

namespace diwarp::hybrid {

/// How often memory is registered anew where software cannot have the STag that the hardware gave.
inline constexpr int kStagTries = 16;

/// Makes an object of both halves under one STag. `make_hardware` makes one under an STag of the
/// hardware's choice, and `make_software(stag)` one under that, or under any where there is none.
/// Those that were made in vain are kept until the end, so that other STags come. Returns
/// {software, hardware}; throws Error(no_resources) where no STag could be had, and what else
/// either half throws.
template <class Result, class MakeHardware, class StagOf, class MakeSoftware>
Result under_one_stag(MakeHardware make_hardware, StagOf stag_of, MakeSoftware make_software) {
  std::vector<decltype(make_hardware())> in_vain;
  for (int i = 0; i < kStagTries; ++i) {
    auto hardware = make_hardware();
    try {
      return Result{.software = make_software(stag_of(*hardware)), .hardware = hardware};
    } catch (const Error& error) {
      if (error.code() != make_error_code(Errc::invalid_argument)) throw;
      // Software refuses an STag that is in use with this code, and much else: that it says again.
      if (i == 0) static_cast<void>(make_software(std::nullopt));
    }
    in_vain.push_back(std::move(hardware));
  }
  throw Error(make_error_code(Errc::no_resources),
              "The STags that the hardware gives are in use in software: destroy some fast "
              "registrations, or open another device");
}

}  // namespace diwarp::hybrid
