// SPDX-License-Identifier: Apache-2.0
#include "llp/impairment/impaired_backend.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "diwarp/error.h"
#include "llp/impairment/impairment.h"
#include "llp/impairment/impairment_text.h"

namespace diwarp::llp {
namespace {

const char* wanted() {
  const char* const text = std::getenv(kImpairVariable);
  return text != nullptr ? text : "";
}

class ImpairedBackend final : public Backend {
 public:
  ImpairedBackend(std::unique_ptr<Backend> inner, Impairment impairment, Counters& counters)
      : inner_(std::move(inner)), impairment_(std::move(impairment)), counters_(counters) {}

  std::unique_ptr<DatagramLink> open_datagrams(const Address& local,
                                               const DatagramOptions& options) override {
    Impairment own = impairment_;
    own.seed += opened_.fetch_add(1);
    // The thread with the baton sends, and may count.
    const auto count = [&counters = counters_](ConstBytes, Verdict what) {
      counters.add(Counter::impaired_offered);
      if (what == Verdict::dropped) counters.add(Counter::impaired_dropped);
    };
    return std::make_unique<ImpairedDatagramLink>(inner_->open_datagrams(local, options),
                                                  std::move(own), SteadyClock::instance(), count);
  }
  Connector& connector() override { return inner_->connector(); }
  BackendDescription describe() const override {
    BackendDescription own = inner_->describe();
    own.datagrams += ", impaired";
    return own;
  }
  DatagramSocketAttributes query_datagrams(const Address& local) const override {
    return inner_->query_datagrams(local);
  }
  void on_ready(std::function<void()> callback) override { inner_->on_ready(std::move(callback)); }

 private:
  const std::unique_ptr<Backend> inner_;
  const Impairment impairment_;
  Counters& counters_;
  std::atomic<uint64_t> opened_{0};
};

}  // namespace

bool wants_impairment() { return *wanted() != '\0'; }

std::unique_ptr<Backend> impaired_as_wanted(std::unique_ptr<Backend> inner, Counters& counters) {
  if (!wants_impairment() || inner == nullptr) return inner;
  std::string why_not;
  auto impairment = parse_impairment(wanted(), why_not);
  if (!impairment)
    throw Error(make_error_code(Errc::invalid_argument),
                std::string(kImpairVariable) + " in the environment cannot be read: " + why_not);
  return std::make_unique<ImpairedBackend>(std::move(inner), *std::move(impairment), counters);
}

}  // namespace diwarp::llp
