// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <span>

#include "diwarp/types.h"
#include "fuzz/fpdu_stream.h"
#include "fuzz/input.h"
#include "fuzz/rc_output.h"
#include "fuzz/rc_startup.h"

namespace diwarp::fuzz {

/// What RcPeer::STags gives for this is the region that peers may only read.
inline constexpr unsigned kNamesReadOnly = 3;

/// A message for a posted receive as the peer has sent it.
struct RcMessage {
  std::optional<uint64_t> immediate = {};  ///< else a Send, of the pattern of `seed`
  uint32_t seed = 0;
  size_t length = 0;
};

/// The peer of one connection: sends what the input says, most of it right but for one thing, and
/// remembers what diwarp may deliver of it.
class RcPeer {
 public:
  using STags = std::function<STag(unsigned)>;  ///< as the input's number names it

  /// `stags` are those of the scene; `output` has what diwarp asked for.
  RcPeer(std::unique_ptr<llp::Stream> stream, const RcStart& start, STags stags, RcOutput& output);

  /// Sends, or does something else to the stream.
  void act(Input& in);
  /// The first message of an initiator that makes diwarp ready to send.
  void make_ready(bool right);
  void listen();
  void push(size_t most) { stream_.push(most); }
  FpduStream& stream() { return stream_; }

  /// Checks a receive that was completed with success.
  void check_delivered(const WorkCompletion& completion, std::span<const std::byte> memory);
  /// All that was sent is known: no bytes of the input stood for bytes of the stream.
  bool known() const { return known_; }

 private:
  void send(const Ulpdu& ulpdu, size_t spoil = 0);
  void send_message(Input& in);
  void send_immediate(Input& in);
  void send_write(Input& in);
  void send_read_request(Input& in);
  void send_atomic_request(Input& in);
  void answer(Input& in);
  void answer_read(Input& in, unsigned how);
  void answer_atomic(Input& in, unsigned how);
  void answer_whole(Input& in);
  void send_terminate(Input& in);
  void send_any(Input& in);
  void send_bytes(Input& in);
  void do_to_stream(Input& in);

  FpduStream stream_;
  const RcStart start_;
  const STags stags_;
  RcOutput& output_;
  std::array<uint32_t, 4> msn_{1, 1, 1, 1};
  RcMessage message_{.seed = 100};  // that is being sent
  bool open_ = false;               // it has begun
  std::deque<RcMessage> sent_;      // and not delivered
  bool known_ = true;
  bool ends_ = false;  // something wrong was sent: nothing after it may be delivered
};

}  // namespace diwarp::fuzz
