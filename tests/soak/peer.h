// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include <diwarp/verbs.h>

#include "base/random.h"
#include "soak/arena.h"
#include "soak/contents.h"
#include "soak/head.h"
#include "soak/ledger.h"
#include "soak/line.h"
#include "soak/offer.h"
#include "soak/remote.h"
#include "soak/requests.h"
#include "soak/settings.h"

namespace soak {

/// One process of a soak: does random operations with its peers until it is told to end, and checks
/// every byte of what comes.
class Peer {
 public:
  explicit Peer(const Settings& settings);
  int run();

 private:
  // peer.cpp: the loop, and what comes from the orchestrator.
  void tick();
  void read_input();
  void obey(const std::string& line);
  void learn_peer(uint32_t index, uint32_t life, std::array<diwarp::Address, 3> addresses);
  void forget_peer(uint32_t index);
  void hear(uint32_t index, const std::string& text);
  void hear_gap(uint32_t index, uint64_t number);
  void hear_partial(uint32_t index, uint64_t offer);
  void tell(uint32_t index, const std::string& text);
  void announce();
  void close_round();
  void find_stuck();
  std::string describe(const Line& line) const;
  void plant_fault();
  bool limited() const { return settings_.address_space != 0 || settings_.descriptors != 0; }
  bool loses(const Line& line);
  bool planted(const char* fault) const { return settings_.plant == fault; }

  // lines.cpp: queue pairs.
  void open_datagrams(Line& line);
  void keep_datagrams(Line& line);
  void renew(Line& line);
  void keep_stream(Line& line);
  void disturb();
  void drop_all(Line& line);
  void post_receives(Line& line);
  void forget_heard(diwarp::QpType type);
  void take_events();
  void take_event(diwarp::CmEvent event);
  void answer(diwarp::CmEvent& event);
  void open_stream(Line& line, uint32_t remote);
  void begin_connection(Line& line);
  void connect_stream(Line& line, uint32_t remote, const std::function<void()>& begin);
  void close_stream(Line& line);
  Line* line_of(uint64_t id_number);
  void enter(Line& line, Line::State state);

  // offers.cpp: memory that is lent.
  void keep_offers();
  void make_offer();
  bool has_stream(uint32_t remote) const;
  void bind_window(Offer& offer);
  void window_bound(uint64_t id, bool success);
  void announce_offer(Offer& offer);
  void end_windows(uint32_t remote);
  void ask_back(Offer& offer);
  void end_offer(Offer& offer);
  void check_untold(const Offer& offer);
  void check_told(const Offer& offer);
  void take_offer(uint32_t index, std::istream& words);
  void return_offer(uint32_t index, uint64_t id);
  void release_reader(const Request& request);
  Offer* find_offer(uint64_t id);
  Lent* pick(uint32_t remote, diwarp::QpType type, Use use);
  void forget(uint32_t remote, uint64_t id);

  // traffic.cpp: what is posted.
  void post_some();
  void post_one(Line& line, uint32_t remote);
  Request* prepare(Line& line, uint32_t remote, Operation operation, size_t length,
                   diwarp::Access access);
  bool refusal_allowed(const std::error_code& error) const;
  bool post(Line& line, Request& request, diwarp::SendWorkRequest wr);
  void post_message(Line& line, uint32_t remote, Operation operation, const Lent* about = nullptr,
                    uint64_t at = 0, uint64_t written = 0);
  void post_immediate(Line& line);
  void post_write(Line& line, uint32_t remote);
  void post_read(Line& line, uint32_t remote);
  void post_atomic(Line& line, uint32_t remote);
  void post_invalidate(Line& line, uint32_t remote);
  void post_refused(Line& line, uint32_t remote);
  void withdraw_one();
  size_t pick_size(size_t most);
  Wrong pick_wrong(const Line& line);

  // check.cpp: what completes.
  void take_completions();
  void take_from(diwarp::CompletionQueue& cq, diwarp::Duration wait);
  void take(const diwarp::WorkCompletion& wc);
  Line& line_of_receive(const Request& request, const diwarp::WorkCompletion& wc);
  void receive_done(Line& line, Request& request, const diwarp::WorkCompletion& wc);
  void unread_came(Line& line, const diwarp::WorkCompletion& wc);
  void message_came(Line& line, const diwarp::WorkCompletion& wc, std::span<std::byte> bytes);
  void immediate_came(Line& line, const diwarp::WorkCompletion& wc);
  void numbered(Line& line, const Head& head);
  void numbered_datagram(Line& line, const Head& head);
  void told(Line& line, const Head& head);
  void invalidated(const Head& head, const diwarp::WorkCompletion& wc);
  void record_came(const diwarp::WorkCompletion& wc);
  void send_done(Line& line, Request& request, const diwarp::WorkCompletion& wc);
  void read_done(Request& request, const diwarp::WorkCompletion& wc);
  void check_status(Line& line, const Request& request, const diwarp::WorkCompletion& wc);
  bool status_allowed(const Line& line, const Request& request, diwarp::WcStatus status) const;
  void check_withdrawn(const Request& request);
  void note_failed(const Request& request);
  void note_written(const Request& request);
  void wrong_byte(const std::string& where, std::span<const std::byte> memory, size_t at);
  uint64_t message_key(uint32_t life, const Head& head, uint32_t to) const;
  uint64_t key(uint32_t life, Kind kind, uint64_t number) const {
    return key_of(settings_.seed, life, kind, number);
  }
  uint64_t own_key(Kind kind, uint64_t number) const { return key(settings_.life, kind, number); }

  const Settings settings_;
  diwarp::Random random_;
  Ledger ledger_;
  Arena arena_;
  bool zerocopy_ = false;
  diwarp::Device device_;
  diwarp::ProtectionDomain pd_;
  diwarp::CompletionQueue cq_;
  diwarp::CompletionQueue shared_cq_;  // of the shared receives, with room for all
  diwarp::SharedReceiveQueue shared_;
  diwarp::CmEventChannel channel_;
  diwarp::CmId listener_;
  Requests requests_;
  std::list<Offer> offers_;
  std::array<Remote, kMostPeers> remotes_;
  std::array<Line, kSharedPlace + 1> lines_;  // UD, RD, RC of each remote, shared receives
  uint64_t next_number_ = 1;
  uint64_t overruns_ = 0;
  uint64_t rounds_ = 0;
  double now_ = 0;   // seconds in which this process and all its peers ran
  double wall_ = 0;  // seconds in which this process ran
  double last_ = 0;  // of the steady clock, at the last tick
  double next_round_ = 0;
  double next_keep_ = 0;
  bool ending_ = false;
  bool done_ = false;
  bool input_ended_ = false;
  bool planted_once_ = false;
  uint64_t planted_losses_ = 0;  // messages of which every twentieth is lost
  std::string input_;
  std::array<std::byte, 128> refused_{};  // that requests name which are refused
  std::vector<std::byte> leaked_;         // planted
};

/// A device whose datagrams are impaired, with options that the process's seed chose.
diwarp::Device open_device(const Settings& settings, diwarp::Random& random, bool& zerocopy);

inline size_t index_of(diwarp::QpType type) { return static_cast<size_t>(type); }

}  // namespace soak
