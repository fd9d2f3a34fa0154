// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "diwarp/error.h"
#include "llp/capture/capture.h"

namespace diwarp::llp {
namespace {

constexpr const char* kFileVariable = "DIWARP_PCAP";
constexpr const char* kLimitVariable = "DIWARP_PCAP_LIMIT";

/// Empty where the variable is not set, or the program has more rights than its user.
std::string_view environment(const char* variable) {
  const char* const value = ::secure_getenv(variable);
  return value == nullptr ? std::string_view() : value;
}

uint64_t limit_from_environment(uint64_t otherwise) {
  const std::string_view text = environment(kLimitVariable);
  uint64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return limit;
  if (!text.empty())
    log::warn(std::string(kLimitVariable) + " is a number of bytes, not " + std::string(text));
  return otherwise;
}

/// Null where the environment does not ask for it, or the file cannot be had.
std::shared_ptr<CaptureFile> file_from_environment(const DeviceOptions& options) {
  const std::string path(environment(kFileVariable));
  if (path.empty()) return nullptr;
  try {
    return CaptureFile::open(path, limit_from_environment(options.pcap_limit));
  } catch (const Error& error) {
    log::warn(std::string(kFileVariable) + ": " + error.what());
    return nullptr;
  }
}

}  // namespace

bool wants_capture(const DeviceOptions& options) {
  return !options.pcap.empty() || !environment(kFileVariable).empty();
}

std::unique_ptr<Backend> captured_as_asked(std::unique_ptr<Backend> backend,
                                           const BackendSetup& setup) {
  if (!backend) return backend;
  const DeviceOptions& options = setup.options;
  auto file = options.pcap.empty() ? file_from_environment(options)
                                   : CaptureFile::open(options.pcap, options.pcap_limit);
  if (!file) return backend;
  return capture_backend(
      std::move(backend),
      std::make_unique<Capture>(std::move(file), setup.address.host(), setup.counters));
}

}  // namespace diwarp::llp
