// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include "diwarp/attributes.h"
#include "diwarp/device_options.h"
#include "diwarp/types.h"
#include "support/catch.h"

using namespace diwarp;

namespace {

/// Whether each of the enumerators up to `last` has words of its own, and what follows has none.
template <class Enum>
bool named_apart(Enum last) {
  std::set<std::string> words;
  const auto count = static_cast<size_t>(last) + 1;
  for (size_t value = 0; value < count; ++value) {
    words.insert(std::string(to_string(static_cast<Enum>(value))));
  }
  return words.size() == count && words.count("unknown") == 0 &&
         to_string(static_cast<Enum>(count)) == "unknown";
}

}  // namespace

TEST_CASE("every value of the public enumerations has words of its own") {
  CHECK(named_apart(QpType::rd));
  CHECK(named_apart(QpState::error));
  CHECK(named_apart(WcStatus::peer_restarted));
  CHECK(named_apart(WrOpcode::write_record));
  CHECK(named_apart(WcOpcode::recv_write_record));
  CHECK(named_apart(AsyncEventType::accept_refused));
}

TEST_CASE("each backend has a name of its own and is found by it") {
  std::set<std::string_view> names;
  for (const IoBackendName& one : kIoBackends) {
    names.insert(one.name);
    CHECK(to_string(one.io) == one.name);
    CHECK(parse_io_backend(one.name) == one.io);
  }
  CHECK(names.size() == kIoBackends.size());
  CHECK(parse_io_backend("unknown") == std::nullopt);
  CHECK(to_string(static_cast<IoBackend>(255)) == "unknown");
}

TEST_CASE("a work request and its completion are named alike") {
  CHECK(to_string(WrOpcode::rdma_write) == to_string(WcOpcode::rdma_write));
  CHECK(to_string(WrOpcode::compare_swap) == to_string(WcOpcode::compare_swap));
  CHECK(to_string(WrOpcode::bind_window) == to_string(WcOpcode::bind_window));
}
