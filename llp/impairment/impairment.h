// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "llp/forwarding.h"

namespace diwarp::llp {

/// Whether to drop the datagram that is the `index`th (from 0) sent over the link. Asked once for
/// each datagram, in order.
using DropRule = std::function<bool(uint64_t index, ConstBytes datagram)>;

/// The one at `n`, counted from 0.
DropRule drop_nth(uint64_t n);
/// Every `n`th: with 3, those at 2, 5, 8 and so on. Never with 0.
DropRule drop_every(uint64_t n);
/// Those at the places where the pattern is true; all beyond it pass.
DropRule drop_bitmap(std::vector<bool> pattern);
/// Those whose byte at `offset`, masked, has this value.
DropRule drop_opcode(size_t offset, uint8_t mask, uint8_t value);
/// Of those that `rule` meets only the one at `n`, counted from 0.
DropRule drop_nth_match(DropRule rule, uint64_t n);

/// The impairments of datagrams. Probabilities are drawn independently for each datagram; where
/// several strike, the first in the order drop, corrupt, truncate, duplicate, reorder wins.
struct Impairment {
  uint64_t seed = 1;
  double drop = 0;
  double corrupt = 0;    ///< one bit is flipped
  double truncate = 0;   ///< cut to a random length, shorter by at least a byte
  double duplicate = 0;  ///< arrives twice
  double reorder = 0;    ///< `reorder_depth` later datagrams overtake it
  uint32_t reorder_depth = 3;
  /// Everything that is not dropped arrives later by `delay` and a random part of `jitter`.
  Duration delay{0};
  Duration jitter{0};
  /// How many datagrams can be queued at a time; those beyond are dropped.
  size_t queue_limit = 4096;
  DropRule drop_if;
};

enum class Verdict : uint8_t {
  passed,
  dropped,
  corrupted,
  truncated,
  duplicated,
  reordered,
  delayed,  ///< by `delay` or `jitter`, and nothing else
};

/// Told of each datagram that send() took, in order, with its bytes as they were given.
using DatagramObserver = std::function<void(ConstBytes datagram, Verdict what)>;

/// Impairs what is sent over another link: the same seed and the same datagrams give the same run.
/// With nothing to impair, nothing to ask and no one to tell, it only passes calls on.
///
/// A queued datagram goes out in a later send() or receive(), once it is due or overtaken, or by
/// flush(). Dropped datagrams count as overtaking. Queued datagrams are copied, into memory
/// that is kept and used again; where there is none, a datagram is dropped instead of queued.
class ImpairedDatagramLink final : public ForwardingDatagramLink {
 public:
  ImpairedDatagramLink(std::unique_ptr<DatagramLink> inner, Impairment impairment,
                       Clock& clock = SteadyClock::instance(), DatagramObserver observer = {});

  SendResult send(std::span<const OutgoingDatagram> burst) override;
  size_t receive(ReceiveBatch& batch) override;

  /// Sends all that is queued, due or not; returns how many the inner link had no room for.
  size_t flush();
  size_t queued() const { return due_.size() + overtaken_.size(); }

 private:
  struct Decision {
    Verdict verdict = Verdict::passed;
    uint64_t place = 0;  // random: which bit to flip, where to cut
    Duration delay{0};
  };
  struct QueuedDatagram {
    std::vector<std::byte> bytes;
    Destination to;
    Duration delay{0};
    uint64_t overtaken_at = 0;  // the index that lets it go
    Time due{};
    uint64_t order = 0;  // among those due at the same time
  };

  /// How far send() looks ahead for datagrams that pass, to hand them on together.
  static constexpr size_t kLookAhead = 64;

  size_t passing(std::span<const OutgoingDatagram> burst);
  Decision& decision(size_t ahead, const OutgoingDatagram& datagram);
  Decision decide(uint64_t index, const OutgoingDatagram& datagram);
  Verdict draw_verdict();
  SendResult impair(const OutgoingDatagram& datagram);
  SendResult emit(const Destination& to, ConstBytes bytes, size_t copies);
  void accept(const OutgoingDatagram& datagram);
  void next_datagram();
  ConstBytes gather(const OutgoingDatagram& datagram);
  bool queue(const Decision& fate, const Destination& to, ConstBytes bytes) noexcept;
  void grow();
  void schedule(QueuedDatagram* datagram);
  void release_overtaken(bool all);
  void release_due();
  void release_until(Time now);
  static bool later(const QueuedDatagram* a, const QueuedDatagram* b);

  const Impairment impairment_;
  Clock& clock_;
  const DatagramObserver observer_;
  const bool delays_;
  const bool acts_;
  Random random_;
  uint64_t index_ = 0;    // of the next datagram
  uint64_t decided_ = 0;  // all before this index are decided; not below index_
  std::array<Decision, kLookAhead> decisions_{};  // at their index, modulo the size
  std::vector<std::byte> scratch_;                // one datagram of any size, gathered
  uint64_t next_order_ = 0;
  std::vector<std::unique_ptr<QueuedDatagram>>
      pool_;  // owns all; each is in one of the three below, which have room for all
  std::vector<QueuedDatagram*> free_;
  std::vector<QueuedDatagram*> overtaken_;  // reordered ones, by overtaken_at
  std::vector<QueuedDatagram*> due_;        // heap, the earliest due in front
};

/// The impairments of the bytes that a stream receives. Offsets count from its first byte.
struct StreamImpairment {
  uint64_t seed = 1;
  double corrupt = 0;                  ///< for each byte: it is changed
  std::optional<uint64_t> corrupt_at;  ///< the byte at this offset is changed
  std::optional<uint64_t> cut_after;   ///< after this many bytes the stream breaks
  size_t max_chunk = 0;                ///< receive() gives 1 to this many bytes; 0: no limit
  /// Bytes arrive later by this much, at most 64 KiB at a time. Such a stream must be polled: its
  /// descriptor does not tell when delayed bytes are due.
  Duration delay{0};
};

/// Impairs what is received from another stream. Which bytes change depends on the seed alone, not
/// on how the bytes are cut into pieces.
class ImpairedStream final : public ForwardingStream {
 public:
  ImpairedStream(std::unique_ptr<Stream> inner, const StreamImpairment& impairment,
                 Clock& clock = SteadyClock::instance());

  IoResult receive(Bytes buffer) override;

 private:
  size_t allowance(size_t wanted);
  IoResult receive_delayed(Bytes buffer);
  void corrupt(Bytes received);

  const StreamImpairment impairment_;
  Clock& clock_;
  Random chunks_;
  Random corruption_;
  uint64_t offset_ = 0;  // bytes handed out
  std::vector<std::byte> delayed_;
  size_t delayed_begin_ = 0;
  size_t delayed_end_ = 0;
  Time due_{};
};

}  // namespace diwarp::llp
