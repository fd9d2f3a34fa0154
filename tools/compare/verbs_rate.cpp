// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "common/failure.h"
#include "common/pairing.h"
#include "common/pattern.h"
#include "compare/stream_lane.h"
#include "compare/verbs_lanes.h"

namespace diwarp::tools {
namespace {

constexpr uint32_t kCreditSize = sizeof(uint64_t);
constexpr uint32_t kSignalEach = 16;  // requests: most sends need no completion
/// A window of which nothing is credited for so long is lost.
constexpr Duration kPatience = std::chrono::milliseconds(5);

/// Sends over many queue pairs of one completion queue at each end, numbered on each. The receiver
/// tells the number that it expects next after each half of a window, with a message the other way;
/// the sender keeps at most a window of messages before that, and posts together what it has room
/// for.
class VerbsRate final : public StreamLane {
 public:
  VerbsRate(const Place& place, const VerbsWay& way)
      : StreamLane(place.control),
        way_(way),
        sender_(place.side == Side::near),
        stride_(std::max<size_t>(way.size, kCreditSize)),
        device_(place.open_device()),
        pd_(device_),
        cq_(device_, way.queue_pairs * slots()),
        memory_(stride_ * way.queue_pairs * slots()),
        region_(pd_, memory_) {
    open();
    meet(place.control);
  }

 private:
  /// A queue pair and its messages.
  struct Flow {
    QueuePair qp;
    uint32_t index = 0;
    Address peer = {};
    uint64_t posted = 0;    // messages; at the receiver, credits
    uint64_t credited = 0;  // messages, of those posted; at the receiver, of those expected
    // The receiver's:
    uint64_t expected = 0;  // the next message's number
    // The sender's: the messages credited when it last looked, and since when.
    uint64_t looked_at = 0;
    Time progress = {};
  };

  uint32_t window() const { return way_.window; }
  /// Of each queue pair: a window of sends, and receives for twice a window.
  uint32_t slots() const { return 3 * way_.window; }

  void open() {
    const QueuePairInit init = {.type = way_.transport,
                                .send_cq = cq_,
                                .recv_cq = cq_,
                                .capacity = {.max_send_wr = window(), .max_recv_wr = 2 * window()},
                                .datagram = {.segment = kSegment}};
    flows_.reserve(way_.queue_pairs);
    for (uint32_t i = 0; i < way_.queue_pairs; ++i) {
      flows_.push_back({.qp = QueuePair(pd_, init), .index = i});
      by_number_[flows_.back().qp.number()] = i;
      for (uint32_t slot = window(); slot < slots(); ++slot) post_receive(flows_.back(), slot);
    }
  }

  void meet(Control& control) {
    Json ports = Json::array();
    for (const Flow& flow : flows_) ports.push_back(flow.qp.address().port());
    control.send({{"type", "ports"}, {"ports", ports}});
    const Json theirs = control.expect("ports");
    if (!theirs.contains("ports") || theirs["ports"].size() != flows_.size()) {
      throw Failure("The two ends of a lane differ.");
    }
    for (Flow& flow : flows_) {
      flow.peer = control.peer_address().with_port(theirs["ports"][flow.index].get<uint16_t>());
    }
  }

  uint64_t send() override {
    uint64_t sent = 0;
    for (Flow& flow : flows_) sent += fill(flow);
    take_completions();
    return sent;
  }

  uint64_t receive() override {
    const uint64_t came = take_completions();
    idle_steps_ = came > 0 ? 0 : idle_steps_ + 1;
    if (idle_steps_ == kIdleSteps) {
      for (Flow& flow : flows_) give_credit(flow);
    }
    return came;
  }

  void look_after(Time now) override {
    for (Flow& flow : flows_) {
      const bool stuck = flow.posted - flow.credited >= window();
      if (!stuck || flow.credited != flow.looked_at) {
        flow.looked_at = flow.credited;
        flow.progress = now;
      } else if (now - flow.progress > kPatience) {
        flow.credited = flow.posted;
      }
    }
  }

  /// Posts together what the window has room for.
  uint64_t fill(Flow& flow) {
    const uint64_t in_window = flow.posted - flow.credited;
    for (uint64_t i = in_window; i < window(); ++i)
      prepare(flow, flow.posted + i - in_window, way_.size);
    return post_prepared(flow);
  }

  void prepare(Flow& flow, uint64_t number, size_t size) {
    const uint64_t place = flow.posted + prepared_.size();
    const auto slot = static_cast<uint32_t>(place % window());
    const std::span<std::byte> message = slot_of(flow, slot).first(size);
    if (sender_)
      stamp(message, number);
    else
      std::memcpy(message.data(), &number, sizeof number);
    Sge& sge = sges_[prepared_.size()];
    sge = {message.data(), static_cast<uint32_t>(size), region_.lkey()};
    SendFlags flags = place % kSignalEach == 0 ? SendFlags::signaled : SendFlags::none;
    if (size <= QueuePairCapacity{}.max_inline_data) flags = flags | SendFlags::inline_data;
    prepared_.push_back(
        {.wr_id = slot, .sges = {&sge, 1}, .flags = flags, .destination = flow.peer});
  }

  /// How many of them the queue had room for.
  uint64_t post_prepared(Flow& flow) {
    size_t posted = 0;
    const std::error_code refused = flow.qp.post_sends(prepared_, posted);
    prepared_.clear();
    if (refused && refused != Errc::queue_full) {
      throw Failure("A message could not be posted: " + refused.message());
    }
    flow.posted += posted;
    return posted;
  }

  void post_receive(Flow& flow, uint32_t slot) {
    const std::span<std::byte> room = slot_of(flow, slot);
    const Sge sge{room.data(), static_cast<uint32_t>(room.size()), region_.lkey()};
    const auto refused = flow.qp.post_recv({.wr_id = slot, .sges = {&sge, 1}});
    if (refused) throw Failure("A receive could not be posted: " + refused.message());
  }

  /// How many messages came.
  uint64_t take_completions() {
    uint64_t came = 0;
    const size_t count = cq_.poll(completions_);
    for (const WorkCompletion& completion : std::span(completions_).first(count)) {
      if (completion.status != WcStatus::success) {
        throw Failure("A message failed: " + std::string(to_string(completion.status)) + ".");
      }
      if (!is_receive(completion)) continue;
      Flow& flow = flows_[by_number_.at(completion.qp_number)];
      take(flow, completion);
      post_receive(flow, static_cast<uint32_t>(completion.wr_id));
      ++came;
    }
    return came;
  }

  void take(Flow& flow, const WorkCompletion& completion) {
    if (completion.source != flow.peer) return;
    const auto message = slot_of(flow, static_cast<uint32_t>(completion.wr_id));
    if (sender_) {
      uint64_t next = 0;
      std::memcpy(&next, message.data(), sizeof next);
      flow.credited = std::clamp(next, flow.credited, flow.posted);
      return;
    }
    const uint64_t number =
        number_of(message.first(completion.byte_count), flow.expected).value_or(flow.expected);
    flow.expected = std::max(flow.expected, number + 1);
    if (flow.expected - flow.credited >= window() / 2 || window() == 1) give_credit(flow);
  }

  void give_credit(Flow& flow) {
    if (flow.expected == flow.credited) return;
    prepare(flow, flow.expected, kCreditSize);
    if (post_prepared(flow) == 1) flow.credited = flow.expected;
  }

  std::span<std::byte> slot_of(const Flow& flow, uint32_t slot) {
    return std::span(memory_).subspan((flow.index * slots() + slot) * stride_, stride_);
  }

  static constexpr uint64_t kIdleSteps = 64;

  VerbsWay way_;
  bool sender_;
  size_t stride_;
  Device device_;
  ProtectionDomain pd_;
  CompletionQueue cq_;
  std::vector<std::byte> memory_;
  MemoryRegion region_;
  std::vector<Flow> flows_;
  std::unordered_map<uint32_t, uint32_t> by_number_;
  std::vector<Sge> sges_ = std::vector<Sge>(way_.window);
  std::vector<SendWorkRequest> prepared_;  // of one flow, not posted yet
  std::array<WorkCompletion, 32> completions_;
  uint64_t idle_steps_ = 0;
};

}  // namespace

std::unique_ptr<Lane> make_verbs_rate(const Place& place, const VerbsWay& way) {
  return std::make_unique<VerbsRate>(place, way);
}

}  // namespace diwarp::tools
