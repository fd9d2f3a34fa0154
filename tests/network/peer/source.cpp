// SPDX-License-Identifier: Apache-2.0
/// The role that sends: Sends, Write-Records or both, whose contents are those of its memory.
#include <chrono>
#include <map>
#include <memory>

#include "endpoint.h"

namespace network {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};  // for one completion

struct SourceSettings {
  EndpointSettings endpoint;
  Remote remote;
  Layout layout;
  std::string operations = "send";
  double seconds = 0;     // instead of a number of messages
  int64_t linger_ms = 0;  // before it tells what became of them
};

class Source {
 public:
  explicit Source(const SourceSettings& settings)
      : settings_(settings),
        end_(settings.endpoint, Contents::of_source),
        destination_(diwarp::Address::parse(settings.remote.address)) {}
  int run();

 private:
  bool more() const;
  bool is_record(uint64_t number) const;
  std::error_code post(uint64_t number);
  void take_one();
  void report();

  const SourceSettings& settings_;
  Endpoint end_;
  diwarp::Address destination_;
  Clock::time_point begin_ = Clock::now();
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  uint64_t bytes_ = 0;
  bool in_order_ = true;
  std::map<std::string, uint64_t> statuses_;
};

bool Source::more() const {
  if (settings_.seconds == 0) return posted_ < settings_.layout.count;
  return Clock::now() - begin_ < std::chrono::duration<double>(settings_.seconds);
}

bool Source::is_record(uint64_t number) const {
  if (settings_.operations == "mixed") return number % 4 == 3;
  return settings_.operations == "write-record";
}

/// The immediate is where the message's bytes lie, at both ends.
std::error_code Source::post(uint64_t number) {
  const Range part = settings_.layout.message(number, end_.memory.size());
  const std::vector<diwarp::Sge> sges = sges_of(end_.region, part);
  if (is_record(number)) {
    return end_.qp.post_write_record(
        {.wr_id = number,
         .sges = sges,
         .destination = destination_,
         .remote = {.stag = settings_.remote.stag, .offset = settings_.remote.base + part.offset},
         .immediate = part.offset});
  }
  return end_.qp.post_send(
      {.wr_id = number, .sges = sges, .destination = destination_, .immediate = part.offset});
}

void Source::take_one() {
  const auto wc = end_.cq.wait(kPatience);
  if (!wc) throw std::runtime_error("no completion came");
  in_order_ = in_order_ && wc->wr_id == done_;
  ++done_;
  ++statuses_[std::string(diwarp::to_string(wc->status))];
  if (wc->status == diwarp::WcStatus::success) bytes_ += wc->byte_count;
}

void Source::report() {
  Json peers = Json::array();
  for (const diwarp::ReliablePeer& peer : end_.qp.peers()) {
    peers.push_back({{"round_trip_us", static_cast<double>(peer.round_trip.count()) / 1e3},
                     {"congestion_window", peer.congestion_window},
                     {"retransmitted", peer.retransmitted}});
  }
  print({{"kind", "sent"},
         {"messages", done_},
         {"bytes", bytes_},
         {"statuses", statuses_},
         {"in_order", in_order_},
         {"seconds", std::chrono::duration<double>(Clock::now() - begin_).count()},
         {"peers", peers},
         {"errors", errors_of(end_.qp)},
         {"counters", counters_of(end_.device)}});
}

int Source::run() {
  begin_ = Clock::now();
  while (more() || done_ < posted_) {
    if (!more() || posted_ - done_ >= settings_.endpoint.depth) {
      take_one();
      continue;
    }
    if (const auto error = post(posted_)) throw std::system_error(error, "post");
    ++posted_;
  }
  end_.cq.wait(std::chrono::milliseconds(settings_.linger_ms));  // none comes
  report();
  return 0;
}

}  // namespace

void add_source(CLI::App& app, int& status) {
  auto settings = std::make_shared<SourceSettings>();
  add_options(app, settings->endpoint);
  add_options(app, settings->remote);
  add_options(app, settings->layout);
  app.add_option("--op", settings->operations, "send, write-record or mixed: every fourth");
  app.add_option("--seconds", settings->seconds, "send for so long, over and over");
  app.add_option("--linger", settings->linger_ms, "milliseconds until it tells what came of it");
  app.callback([settings, &status] { status = Source(*settings).run(); });
}

}  // namespace network
