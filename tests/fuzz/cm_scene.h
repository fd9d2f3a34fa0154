// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "fuzz/cm_model.h"
#include "fuzz/input.h"

namespace diwarp::fuzz {

/// Two devices on loopback, and an application that calls the connection manager as the input
/// says. The devices have no threads: they move in settle() alone.
class CmScene {
 public:
  explicit CmScene(Input& in);
  ~CmScene();
  CmScene(const CmScene&) = delete;
  CmScene& operator=(const CmScene&) = delete;

  void act();
  /// Each attempt has an outcome, and each connection an end.
  void finish();

 private:
  static constexpr size_t kDevices = 2;
  static constexpr size_t kIds = 6;
  static constexpr size_t kQueuePairs = 4;
  static constexpr size_t kStrangers = 3;

  /// An id, and the place of the queue pair that it was given.
  struct Entry {
    CmId id;
    CmModel model;
    size_t device = 0;
    size_t channel = 0;
    std::optional<size_t> queue_pair = {};
  };
  struct Party {
    Party(const Device& host, size_t on, QpType type);
    const size_t device;
    ProtectionDomain pd;
    CompletionQueue cq;
    QueuePair qp;
  };
  using Stage = CmModel::Stage;
  using Call = CmModel::Call;

  void create(size_t slot);
  void resolve(Entry& entry);
  void bind(Entry& entry);
  void listen(Entry& entry);
  void connect(Entry& entry);
  void accept(Entry& entry);
  void reject(Entry& entry);
  void disconnect(Entry& entry);
  void move(size_t from);
  void check_husk(CmId& husk);
  void destroy(size_t slot);
  void change_party();
  void end_party(size_t place, bool destroyed);
  void be_stranger();
  void close_channel();

  /// Makes the call. True if it was taken; it must be refused where the model says so, and taken
  /// where the model and `right` say so.
  template <class Function>
  bool call(Entry& entry, Call which, bool right, Function&& function);
  std::vector<std::byte> private_data();
  Address any_address();
  Entry* entry_of(uint64_t number);
  void settle();
  bool take_events();
  void take_event(size_t channel, CmEvent event);
  void take_request(size_t channel, CmEvent& event);
  void check_private_data(const CmEvent& event) const;
  void wait_for_outcomes();
  void drop_all();

  Input& in_;
  std::deque<Device> devices_;
  std::array<std::optional<CmEventChannel>, kDevices> channels_;
  std::array<std::unique_ptr<Entry>, kIds> ids_;
  std::array<std::unique_ptr<Party>, kQueuePairs> parties_;
  std::array<UniqueFd, kStrangers> strangers_;
  bool stranger_spoke_ = false;
  std::vector<std::vector<std::byte>> said_;  // the private data of all calls
};

}  // namespace diwarp::fuzz
