// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_sender.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/mapped_address.h"
#include "llp/socket/send_list.h"
#include "llp/socket/socket_address.h"
#include "llp/udp/local_addresses.h"

namespace diwarp::llp {
namespace {

constexpr size_t kMessagesPerSend = 16;
constexpr size_t kMaxPieces = IOV_MAX;
constexpr size_t kMaxSegments = 64;  // every kernel with UDP_SEGMENT takes so many
constexpr size_t kMaxTrainBytes = kMaxDatagramIpv6;
constexpr size_t kCopied = 2048;        // a lone datagram up to this is copied
constexpr size_t kCopiedInTrain = 256;  // and one of a train up to this
// The system's own bytes for a fragment in a send buffer, at most.
constexpr size_t kFragmentOverhead = 2048;
constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

/// A burst as the system call wants it: one message for each train of datagrams.
class Messages {
 public:
  // Leaves the arrays as they come: only what add() fills is read.
  /// `locals`: the addresses that datagrams may leave from; null where there is one only.
  Messages(sa_family_t family, bool connected, const LocalAddresses* locals)
      : family_(family), connected_(connected), locals_(locals) {}

  /// Appends one message that carries all of `train`, whose datagrams have one size but for the
  /// last. False when there is no room for it.
  bool add(std::span<const OutgoingDatagram> train) {
    const size_t first_piece = pieces_used_;
    if (count_ == kMessagesPerSend || !gather(train)) {
      pieces_used_ = first_piece;
      return false;
    }
    msghdr& header = headers_[count_].msg_hdr;
    header = {};
    if (!connected_) {
      header.msg_name = &names_[count_];
      header.msg_namelen = to_socket_address(train.front().to, family_, names_[count_]);
    }
    header.msg_iov = &pieces_[first_piece];
    header.msg_iovlen = pieces_used_ - first_piece;
    const OutgoingDatagram& first = train.front();
    if (train.size() > 1) controls_[count_].add_segment_size(header, first.size());
    if (locals_ != nullptr && first.local != 0)
      controls_[count_].add_source(header, locals_->at(first.local));
    trains_[count_++] = train.size();
    datagrams_ += train.size();
    return true;
  }

  size_t datagrams() const { return datagrams_; }
  size_t first_train() const { return trains_[0]; }

  std::span<mmsghdr> headers() { return {headers_.data(), count_}; }

  /// How many datagrams are in the first `sent` messages; -1 stays what it is.
  ssize_t datagrams_in(ssize_t sent) const {
    if (sent <= 0) return sent;
    const auto end = trains_.begin() + sent;
    return static_cast<ssize_t>(std::accumulate(trains_.begin(), end, size_t{0}));
  }

 private:
  bool gather(std::span<const OutgoingDatagram> train) {
    const size_t first = pieces_used_;
    for (const OutgoingDatagram& datagram : train) {
      if (copy(datagram, first)) continue;
      if (datagram.pieces.size() > kMaxPieces - pieces_used_) return false;
      for (ConstBytes piece : datagram.pieces) add(piece, first);
    }
    return true;
  }

  /// Puts a small datagram together after the one before it: gathering three short pieces costs
  /// the kernel more than copying them. False when it is not small, is one piece, or there is no
  /// room.
  bool copy(const OutgoingDatagram& datagram, size_t first) {
    if (datagram.pieces.size() == 1) return false;
    const size_t size = datagram.size();
    if (size > kCopiedInTrain || size > copies_.size() - copied_) return false;
    if (pieces_used_ == kMaxPieces) return false;
    std::byte* const start = copies_.data() + copied_;
    std::byte* end = start;
    for (ConstBytes piece : datagram.pieces) end = std::copy(piece.begin(), piece.end(), end);
    copied_ += size;
    add({start, size}, first);
    return true;
  }

  /// Pieces of one message (from `first` on) that lie one after the other are one to the kernel.
  void add(ConstBytes piece, size_t first) {
    auto* const begin = const_cast<std::byte*>(piece.data());
    if (pieces_used_ != first) {
      iovec& last = pieces_[pieces_used_ - 1];
      if (static_cast<std::byte*>(last.iov_base) + last.iov_len == begin) {
        last.iov_len += piece.size();
        return;
      }
    }
    pieces_[pieces_used_++] = {begin, piece.size()};
  }

  const sa_family_t family_;
  const bool connected_;
  const LocalAddresses* const locals_;
  size_t count_ = 0;
  size_t datagrams_ = 0;
  size_t pieces_used_ = 0;
  size_t copied_ = 0;
  std::array<mmsghdr, kMessagesPerSend> headers_;
  std::array<sockaddr_storage, kMessagesPerSend> names_;
  std::array<SendControl, kMessagesPerSend> controls_;
  std::array<size_t, kMessagesPerSend> trains_;  // datagrams in each message
  std::array<iovec, kMaxPieces> pieces_;
  std::array<std::byte, kMaxSegments * kCopiedInTrain> copies_;
};

/// Whether one message can carry both.
bool leave_together(const OutgoingDatagram& one, const OutgoingDatagram& other) {
  // guard(trains-by-address): without && one.local == other.local
  return one.to == other.to && one.local == other.local;
}

bool means_full(int error) {
  // guard(send-fault): error == ENOBUFS || error == ENOMEM => false
  return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM;
}

/// Errors by which systems refuse to segment (udp(7), sandboxes); datagrams too long for the path,
/// and some destinations, earn them as well.
bool may_mean_no_train(int error) {
  return error == EIO || error == EINVAL || error == EMSGSIZE || error == EOPNOTSUPP ||
         error == ENOPROTOOPT;
}

/// Of these, those that ICMP messages bring as well.
bool may_be_of_icmp(int error) {
  return error == EMSGSIZE || error == EOPNOTSUPP || error == ENOPROTOOPT;
}

/// Whether nothing that was sent before waits in the socket.
bool is_drained(int fd) {
  int waiting = 0;
  return ::ioctl(fd, SIOCOUTQ, &waiting) == 0 && waiting == 0;
}

}  // namespace

UdpSender::UdpSender(UdpSocket& socket, const UdpOptions& options)
    : socket_(socket),
      fragment_(options.fragment),
      // A segment size of 0 changes nothing: this only asks whether the kernel knows the option.
      gso_(options.segmentation && set_socket_option(socket.fd.get(), IPPROTO_UDP, UDP_SEGMENT, 0)),
      path_mtu_(socket.local, socket.interface) {
  if (options.segmentation && !gso_) socket_.degradations.add(Counter::gso_missing);
}

size_t UdpSender::max_fragmented(const Address& to) {
  if (socket_.degradations.has(Counter::jumbo_refused)) return path_mtu_.max_datagram(to);
  return unmapped(to).family() == AddressFamily::ipv4 ? kMaxDatagram : kMaxDatagramIpv6;
}

SendResult UdpSender::send(std::span<const OutgoingDatagram> burst) {
  return send_all(burst, [this](auto part) { return submit(part, nullptr); });
}

SendResult UdpSender::send(std::span<const OutgoingDatagram> burst, SendPath& path) {
  return send_all(burst, [this, &path](auto part) { return submit(part, &path); });
}

template <class Submit>
SendResult UdpSender::send_all(std::span<const OutgoingDatagram> burst, Submit submit) {
  if (burst.empty()) return {};
  const Submitted first = submit(burst);
  if (first.datagrams != burst.size()) return send_on(burst, first, submit);
  queue_refusals_ = 0;
  return {.sent = burst.size()};
}

/// After the first step, which did not send all.
template <class Submit>
[[gnu::noinline]] SendResult UdpSender::send_on(std::span<const OutgoingDatagram> burst,
                                                Submitted step, Submit submit) {
  SendResult result;
  bool retried = false;
  bool suspected = false;  // a train was refused: is it so for its first datagram alone?
  int of_icmp = 0;         // calls that failed for ICMP messages
  for (;;) {
    const auto rest = burst.subspan(result.sent);
    result.sent += step.datagrams;
    if (step.datagrams != 0) queue_refusals_ = 0;
    if (step.error == 0) {
      if (suspected) stop_trains();  // guard(segmentation-fault)
      retried = suspected = false;
    } else if (is_of_icmp(step.error)) {
      if (++of_icmp > IcmpErrors::kMostRetries)
        return {result.sent, SendStatus::would_block, step.error};
    } else if (gives_up(step.error)) {
      result.sent += step.first_message;
    } else if (means_full(step.error)) {
      // guard(send-buffer-fault): condition => false
      if (cannot_fragment(rest.front(), step.error))
        return {result.sent, SendStatus::refused, EMSGSIZE};
      return {result.sent, SendStatus::would_block, step.error};
    } else if ((socket_.connected || may_be_of_icmp(step.error)) && !std::exchange(retried, true)) {
      // An ICMP error of which the error queue had no room to tell.
    } else if (step.refused_train) {
      suspected = true;
    } else if (std::exchange(retried, true)) {
      // The first failure may be such an ICMP error, too; the second is this datagram's own.
      return {result.sent, SendStatus::refused, step.error};
    }
    if (result.sent >= burst.size()) return result;
    const auto left = burst.subspan(result.sent);
    // guard(segmentation-fault): without suspected ? left.first(1) :
    step = submit(suspected ? left.first(1) : left);
  }
}

void UdpSender::stop_trains() {
  gso_ = false;
  socket_.degradations.add(Counter::gso_refused);
}

/// Whether the send buffer is too small for the fragments of a datagram, however long it waits. A
/// buffer with room for all of them is not: a queue of the host's has dropped one.
bool UdpSender::cannot_fragment(const OutgoingDatagram& datagram, int error) {
  const size_t fragment = path_mtu_.max_datagram(datagram.to);
  const bool fragmented =
      fragment_ && error != EAGAIN && error != EWOULDBLOCK && datagram.size() > fragment;
  if (!fragmented || !is_drained(socket_.fd.get())) return false;
  const size_t needed = (datagram.size() / fragment + 1) * (2 * fragment + kFragmentOverhead);
  const int room = socket_option(socket_.fd.get(), SOL_SOCKET, SO_SNDBUF);
  if (room > 0 && static_cast<size_t>(room) > needed) return false;
  socket_.degradations.add(Counter::jumbo_refused);
  return true;
}

/// Whether the error is one of ICMP messages, which are collected by now.
bool UdpSender::is_of_icmp(int error) const {
  return error != EAGAIN && error != EWOULDBLOCK && socket_.icmp.collect() != 0;
}

/// Whether what a queue of the host's drops counts as sent, for it has been tried long enough. A
/// socket that is told of ICMP errors is told of such drops as well.
bool UdpSender::gives_up(int error) {
  if (error != ENOBUFS || ++queue_refusals_ <= kMostQueueRefusals) return false;
  queue_refusals_ = 0;
  return true;
}

UdpSender::Submitted UdpSender::submit(std::span<const OutgoingDatagram> burst, SendPath* path) {
  const OutgoingDatagram& first = burst.front();
  const bool is_lone =
      burst.size() == 1 && first.pieces.size() <= kMaxPieces && first.size() <= kCopied;
  if (!is_lone) return submit_messages(burst, path);
  const ssize_t sent = uninterrupted([&] { return send_lone(first); });
  return sent > 0 ? Submitted{.datagrams = 1} : submitted(first, 1, sent);
}

UdpSender::Submitted UdpSender::submit_messages(std::span<const OutgoingDatagram> burst,
                                                SendPath* path) {
  const OutgoingDatagram& first = burst.front();
  Messages messages(socket_.family, socket_.connected,
                    socket_.connected ? nullptr : socket_.locals.get());
  while (messages.datagrams() < burst.size()) {
    const auto rest = burst.subspan(messages.datagrams());
    if (!messages.add(rest.first(train_length(rest)))) break;
  }
  if (messages.datagrams() == 0) return {.error = EMSGSIZE};
  const ssize_t sent = uninterrupted([&] { return send_messages(messages.headers(), path); });
  // The error that ended it is not told again, though the error queue may tell of it.
  if (sent > 0 && static_cast<size_t>(sent) < messages.headers().size()) socket_.icmp.collect();
  return submitted(first, messages.first_train(), messages.datagrams_in(sent));
}

/// Sends one datagram of at most kCopied bytes: copying it together costs less than having the
/// kernel gather it.
ssize_t UdpSender::send_lone(const OutgoingDatagram& datagram) {
  if (datagram.pieces.size() == 1) return send_whole(datagram, datagram.pieces.front());
  std::array<std::byte, kCopied> copy;
  std::byte* end = copy.data();
  for (ConstBytes piece : datagram.pieces) end = std::copy(piece.begin(), piece.end(), end);
  return send_whole(datagram, {copy.data(), end});
}

/// The same of one whose bytes are together.
ssize_t UdpSender::send_whole(const OutgoingDatagram& datagram, ConstBytes bytes) {
  if (socket_.connected)
    return ::send(socket_.fd.get(), bytes.data(), bytes.size(), kFlags) < 0 ? -1 : 1;
  sockaddr_storage name;
  const socklen_t length = to_socket_address(datagram.to, socket_.family, name);
  if (datagram.local == 0 || socket_.locals == nullptr) {
    const ssize_t sent = ::sendto(socket_.fd.get(), bytes.data(), bytes.size(), kFlags,
                                  reinterpret_cast<const sockaddr*>(&name), length);
    return sent < 0 ? -1 : 1;
  }
  iovec piece = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  SendControl control;
  msghdr header{};
  header.msg_name = &name;
  header.msg_namelen = length;
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  control.add_source(header, socket_.locals->at(datagram.local));
  return ::sendmsg(socket_.fd.get(), &header, kFlags) < 0 ? -1 : 1;
}

/// Hands messages to the kernel, without blocking; how many it took, or -1 and errno.
ssize_t UdpSender::send_messages(std::span<mmsghdr> messages, SendPath* path) {
  const ssize_t sent = path == nullptr ? 0 : path->send(messages);
  if (sent != 0) return sent;
  if (messages.size() == 1) {
    const ssize_t bytes = ::sendmsg(socket_.fd.get(), &messages.front().msg_hdr, kFlags);
    return bytes < 0 ? -1 : 1;
  }
  return ::sendmmsg(socket_.fd.get(), messages.data(), static_cast<unsigned>(messages.size()),
                    kFlags);
}

/// The outcome of a system call that sent so many datagrams, or -1 and errno.
UdpSender::Submitted UdpSender::submitted(const OutgoingDatagram& first, size_t train,
                                          ssize_t sent) {
  if (sent >= 0) return {.datagrams = static_cast<size_t>(sent)};
  const int error = errno;
  const bool too_long = may_mean_no_train(error);  // perhaps
  if (too_long) path_mtu_.forget(first.to);
  return {.error = error, .refused_train = too_long && train > 1, .first_message = train};
}

/// How many datagrams at the front of the burst can leave as one message: to one destination, of
/// one size that the path carries; only the last may be shorter, and none may be empty.
size_t UdpSender::train_length(std::span<const OutgoingDatagram> burst) {
  if (!gso_ || burst.size() < 2 || !leave_together(burst[0], burst[1])) return 1;
  const Address& to = burst[0].to;
  const size_t segment = burst[0].size();
  // guard(fragmentation): without path_mtu_.
  if (segment == 0 || segment > path_mtu_.max_datagram(to)) return 1;
  size_t bytes = segment;
  size_t pieces = burst[0].pieces.size();
  size_t length = 1;
  size_t last = segment;
  while (length < std::min(burst.size(), kMaxSegments) && last == segment) {
    const OutgoingDatagram& next = burst[length];
    last = next.size();
    bytes += last;
    pieces += next.pieces.size();
    if (last == 0 || last > segment || bytes > kMaxTrainBytes) break;
    if (pieces > kMaxPieces || !leave_together(burst[0], next)) break;
    ++length;
  }
  return length;
}

}  // namespace diwarp::llp
