// SPDX-License-Identifier: Apache-2.0
/// The role that reads a target's memory, and tells what came of each Read.
#include <chrono>
#include <memory>

#include "endpoint.h"

namespace network {

namespace {

constexpr std::chrono::seconds kPatience{60};  // for one completion

struct ReaderSettings {
  EndpointSettings endpoint;
  Remote remote;
  Layout layout;
  int64_t timeout_ms = 100;
  int32_t retries = 0;
};

class Reader {
 public:
  explicit Reader(const ReaderSettings& settings)
      : settings_(settings), end_(settings.endpoint, Contents::of_source) {}
  int run();

 private:
  void post(uint64_t number);
  void take_one();

  const ReaderSettings& settings_;
  Endpoint end_;
  uint64_t posted_ = 0;
  std::vector<Json> reads_;
  diwarp::ValidityMap read_{end_.memory.size(), {}};
};

void Reader::post(uint64_t number) {
  const Range part = settings_.layout.message(number, end_.memory.size());
  const std::vector<diwarp::Sge> sges = sges_of(end_.region, part);
  const std::error_code error = end_.qp.post_read(
      {.wr_id = number,
       .sges = sges,
       .destination = diwarp::Address::parse(settings_.remote.address),
       .remote = {.stag = settings_.remote.stag, .offset = settings_.remote.base + part.offset},
       .limits = {.timeout = std::chrono::milliseconds(settings_.timeout_ms),
                  .retries = settings_.retries}});
  if (error) throw std::system_error(error, "post_read");
}

/// The bytes are those that stood in the target's memory from the beginning.
void Reader::take_one() {
  const auto wc = end_.cq.wait(kPatience);
  if (!wc) throw std::runtime_error("no completion came");
  const Range part = settings_.layout.message(wc->wr_id, end_.memory.size());
  const bool right = holds(end_.memory, Contents::of_target, wc->validity.ranges(), part.offset);
  add(read_, wc->validity, part.offset);
  reads_.push_back({{"kind", "read"},
                    {"number", wc->wr_id},
                    {"status", diwarp::to_string(wc->status)},
                    {"length", part.length},
                    {"valid", wc->valid_bytes},
                    {"ranges", to_json(wc->validity)},
                    {"wrong", !right}});
}

int Reader::run() {
  while (reads_.size() < settings_.layout.count) {
    const bool full = posted_ - reads_.size() >= settings_.endpoint.depth;
    if (full || posted_ == settings_.layout.count) {
      take_one();
    } else {
      post(posted_++);
    }
  }
  for (const Json& read : reads_) print(read);
  print({{"kind", "end"},
         {"changed", !holds(end_.memory, Contents::of_source, read_.gaps(), 0)},
         {"counters", counters_of(end_.device)}});
  return 0;
}

}  // namespace

void add_reader(CLI::App& app, int& status) {
  auto settings = std::make_shared<ReaderSettings>();
  add_options(app, settings->endpoint);
  add_options(app, settings->remote);
  add_options(app, settings->layout);
  app.add_option("--timeout", settings->timeout_ms, "milliseconds");
  app.add_option("--retries", settings->retries, "how often what is missing is asked for again");
  app.callback([settings, &status] { status = Reader(*settings).run(); });
}

}  // namespace network
