// SPDX-License-Identifier: Apache-2.0
/// The role that things are sent to: takes Sends and Write-Records, looks at every byte, and at the
/// end tells of each.
#include <chrono>
#include <memory>

#include "endpoint.h"

namespace network {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr milliseconds kQuiet{300};  // nothing more is under way then
constexpr milliseconds kSample{100};

struct TargetSettings {
  EndpointSettings endpoint;
  std::vector<std::string> groups;
  uint32_t receive_bytes = 4096;
  bool flow = false;  // only counts bytes
};

class Target {
 public:
  explicit Target(const TargetSettings& settings);
  int run();

 private:
  void join_groups();
  void post_receive(uint64_t slot);
  std::span<std::byte> slot(uint64_t number);
  void handle(const diwarp::WorkCompletion& wc);
  void handle_send(const diwarp::WorkCompletion& wc);
  void handle_record(const diwarp::WorkCompletion& wc);
  Json describe(const diwarp::WorkCompletion& wc, const char* kind) const;
  void sample();
  bool idle(size_t taken) const;
  void report();

  const TargetSettings& settings_;
  Endpoint end_;
  std::vector<std::byte> inbox_;
  diwarp::MemoryRegion inbox_region_;
  std::vector<Json> messages_;
  diwarp::ValidityMap written_{end_.memory.size(), {}};
  uint64_t bytes_ = 0;
  Json samples_ = Json::array();
  Clock::time_point sampled_{};
};

Target::Target(const TargetSettings& settings)
    : settings_(settings),
      end_(settings.endpoint, Contents::of_target),
      inbox_(size_t{settings.endpoint.depth} * settings.receive_bytes),
      inbox_region_(end_.pd, inbox_) {
  for (uint64_t i = 0; i < settings.endpoint.depth; ++i) post_receive(i);
  join_groups();
}

void Target::join_groups() {
  for (const std::string& group : settings_.groups) {
    end_.qp.join(diwarp::Address::parse(group), settings_.endpoint.datagram.group.interface);
  }
}

std::span<std::byte> Target::slot(uint64_t number) {
  return std::span(inbox_).subspan(number * settings_.receive_bytes, settings_.receive_bytes);
}

void Target::post_receive(uint64_t number) {
  const diwarp::Sge sge =
      inbox_region_.sge(number * settings_.receive_bytes, settings_.receive_bytes);
  if (const auto error = end_.qp.post_recv({.wr_id = number, .sges = {&sge, 1}})) {
    throw std::system_error(error, "post_recv");
  }
}

Json Target::describe(const diwarp::WorkCompletion& wc, const char* kind) const {
  return {{"kind", kind},
          {"immediate", wc.immediate},
          {"has_immediate", wc.has_immediate},
          {"source", wc.source.to_string()},
          {"solicited", wc.solicited}};
}

/// A Send's immediate is the offset that its bytes have at the source.
void Target::handle_send(const diwarp::WorkCompletion& wc) {
  bytes_ += wc.byte_count;
  if (!settings_.flow) {
    Json word = describe(wc, "send");
    word["length"] = wc.byte_count;
    word["wrong"] = !holds(slot(wc.wr_id).first(wc.byte_count), Contents::of_source, wc.immediate);
    messages_.push_back(std::move(word));
  }
  post_receive(wc.wr_id);
}

void Target::handle_record(const diwarp::WorkCompletion& wc) {
  bytes_ += wc.valid_bytes;
  if (settings_.flow) return;
  Json word = describe(wc, "record");
  const uint64_t offset = wc.tagged_offset - end_.region.base();
  word.update({{"offset", offset},
               {"stag", wc.stag},
               {"length", wc.validity.length()},
               {"valid", wc.valid_bytes},
               {"complete", wc.validity.complete()},
               {"ranges", to_json(wc.validity)},
               {"wrong", !holds(end_.memory, Contents::of_source, wc.validity.ranges(), offset)}});
  add(written_, wc.validity, offset);
  messages_.push_back(std::move(word));
}

void Target::handle(const diwarp::WorkCompletion& wc) {
  if (wc.status != diwarp::WcStatus::success) {
    messages_.push_back({{"kind", "failure"}, {"status", diwarp::to_string(wc.status)}});
  } else if (wc.opcode == diwarp::WcOpcode::recv_write_record) {
    handle_record(wc);
  } else {
    handle_send(wc);
  }
}

void Target::sample() {
  const Clock::time_point now = Clock::now();
  if (!settings_.flow || now - sampled_ < kSample) return;
  sampled_ = now;
  samples_.push_back({std::chrono::duration<double>(now.time_since_epoch()).count(), bytes_});
}

bool Target::idle(size_t taken) const { return taken == 0 && end_.qp.open_records().empty(); }

/// Outside of what was reported as valid nothing may have changed.
void Target::report() {
  for (const Json& message : messages_) print(message);
  Json word = {{"kind", "end"},
               {"bytes", bytes_},
               {"samples", samples_},
               {"counters", counters_of(end_.device)}};
  if (!settings_.flow)
    word["changed"] = !holds(end_.memory, Contents::of_target, written_.gaps(), 0);
  print(word);
}

int Target::run() {
  print({{"kind", "ready"},
         {"address", end_.qp.address().to_string()},
         {"stag", end_.region.rkey()},
         {"base", end_.region.base()}});
  diwarp::WorkCompletion completions[64];
  size_t taken = 0;
  for (bool ending = false; !ending || !idle(taken);) {
    taken = end_.cq.poll(completions, ending ? kQuiet : kSample);
    for (size_t i = 0; i < taken; ++i) handle(completions[i]);
    for (diwarp::WorkCompletion& wc : completions) wc = {};  // gives the maps back
    sample();
    ending = ending || told_to_end();
  }
  report();
  return 0;
}

}  // namespace

void add_target(CLI::App& app, int& status) {
  auto settings = std::make_shared<TargetSettings>();
  add_options(app, settings->endpoint);
  app.add_option("--join", settings->groups, "groups to listen to")->delimiter(',');
  app.add_option("--receive", settings->receive_bytes, "bytes of a receive");
  app.add_flag("--flow", settings->flow, "only count bytes, every 100 ms");
  app.callback([settings, &status] { status = Target(*settings).run(); });
}

}  // namespace network
