// SPDX-License-Identifier: Apache-2.0
#include "llp/tcp/tcp_stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "diwarp/error.h"
#include "llp/socket/busy_poll.h"
#include "llp/socket/send_list.h"
#include "llp/socket/socket_address.h"
#include "llp/tcp/tcp_socket.h"
#include "llp/tcp/zero_copy_sender.h"

namespace diwarp::llp {
namespace {

constexpr size_t kMaxPieces = IOV_MAX;
constexpr size_t kDefaultSegment = 536;  // RFC 9293 section 3.7.1

/// Why the descriptor cannot serve as a stream; nullptr when it can.
const char* unfit(int fd) {
  const int type = socket_option(fd, SOL_SOCKET, SO_TYPE);
  if (type < 0) return "is no socket";
  // guard(rows:rc-over-tcp): condition => false
  if (type != SOCK_STREAM || socket_option(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP) {
    return "does not speak TCP";
  }
  if (peer_address_of(fd).port() == 0) return "is not connected";
  return nullptr;
}

IoResult failure(int error) {
  // guard(stream-fault): error == ENOBUFS || error == ENOMEM => false
  const bool full = error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM;
  if (full) return {IoStatus::would_block, 0, 0};
  return {IoStatus::failed, 0, error};
}

/// The pieces that one call gathers, the short ones copied into `room`. The array is not set before
/// it is used.
class Gathering {
 public:
  explicit Gathering(Bytes room) : room_(room) {}

  // A piece costs the kernel more than a few bytes cost a copy (64 bytes in three pieces: 7 % of a
  // polled round trip), so short pieces are put together first: kShortBytes in one call.
  static bool is_short(ConstBytes piece) { return piece.size() <= kCopiedPiece; }
  bool has_room(ConstBytes piece) const { return piece.size() <= room_.size() - copied_; }

  void add(ConstBytes piece) {
    if (is_short(piece) && has_room(piece)) piece = copy(piece);
    const bool follows = count_ != 0 && piece.data() == end_;
    if (follows)
      pieces_[count_ - 1].iov_len += piece.size();
    else
      pieces_[count_++] = {const_cast<std::byte*>(piece.data()), piece.size()};
    end_ = piece.data() + piece.size();
    bytes_ += piece.size();
  }
  /// Adds pieces up to a short one that finds no room: short ones are the caller's again at once.
  /// Returns how many.
  size_t add_zero_copy(std::span<const ConstBytes> pieces) {
    const size_t most = std::min(pieces.size(), kMaxPieces);
    for (size_t i = 0; i < most; ++i) {
      if (is_short(pieces[i]) && !has_room(pieces[i])) return i;
      if (!pieces[i].empty()) add(pieces[i]);
    }
    return most;
  }

  std::span<iovec> pieces() { return std::span(pieces_).first(count_); }
  size_t bytes() const { return bytes_; }

 private:
  ConstBytes copy(ConstBytes piece) {
    std::byte* const target = room_.data() + copied_;
    std::memcpy(target, piece.data(), piece.size());
    copied_ += piece.size();
    return {target, piece.size()};
  }

  std::array<iovec, kMaxPieces> pieces_;
  const Bytes room_;
  size_t count_ = 0;
  size_t copied_ = 0;
  size_t bytes_ = 0;
  const std::byte* end_ = nullptr;  // of the last piece
};

/// Bytes of pieces that are all short and find room together; 0 where they are not, or are none.
size_t short_bytes(std::span<const ConstBytes> pieces) {
  if (pieces.size() > kMaxPieces) return 0;
  size_t bytes = 0;
  for (const ConstBytes piece : pieces) {
    if (!Gathering::is_short(piece)) return 0;
    bytes += piece.size();
  }
  return bytes <= kShortBytes ? bytes : 0;
}

IoResult handed_over(ssize_t bytes) {
  if (bytes < 0) return failure(errno);
  return {IoStatus::ok, static_cast<size_t>(bytes), 0};
}

/// The result of a call after those that took `before` bytes, all that they were given.
IoResult behind(size_t before, const IoResult& last) {
  return before == 0 ? last : IoResult{IoStatus::ok, before + last.bytes, 0};
}

IoResult received(ssize_t bytes) {
  if (bytes < 0) return failure(errno);
  if (bytes == 0) return {IoStatus::closed, 0, 0};
  return {IoStatus::ok, static_cast<size_t>(bytes), 0};
}

}  // namespace

std::unique_ptr<TcpStream> TcpStream::adopt(int connected_descriptor) {
  if (const char* reason = unfit(connected_descriptor)) {
    throw Error(Errc::invalid_argument, "Descriptor " + std::to_string(connected_descriptor) + " " +
                                            reason + ": give a connected TCP socket");
  }
  ::fcntl(connected_descriptor, F_SETFL, ::fcntl(connected_descriptor, F_GETFL) | O_NONBLOCK);
  ::fcntl(connected_descriptor, F_SETFD, FD_CLOEXEC);
  return over(UniqueFd(connected_descriptor));
}

std::unique_ptr<TcpStream> TcpStream::over(UniqueFd connected) {
  const Address peer = peer_address_of(connected.get());
  return over(std::move(connected), peer);
}

std::unique_ptr<TcpStream> TcpStream::over(UniqueFd connected, const Address& peer) {
  return std::unique_ptr<TcpStream>(new TcpStream(std::move(connected), peer));
}

TcpStream::TcpStream(UniqueFd fd, const Address& peer)
    : tcp_(std::move(fd)), local_(local_address_of(tcp_.fd.get())), peer_(peer) {
  set_socket_option(tcp_.fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
}

TcpStream::~TcpStream() = default;

IoResult TcpStream::send(std::span<const ConstBytes> pieces) {
  if (!tcp_.fd) return {IoStatus::failed, 0, ECONNABORTED};
  std::array<std::byte, kShortBytes> room;
  if (short_bytes(pieces) != 0) {
    std::byte* end = room.data();
    for (const ConstBytes piece : pieces) end = std::copy(piece.begin(), piece.end(), end);
    iovec all = {room.data(), static_cast<size_t>(end - room.data())};
    return handed_over(send_list(tcp_.fd.get(), {&all, 1}));
  }
  return send_gathered(pieces, room);
}

IoResult TcpStream::send_gathered(std::span<const ConstBytes> pieces, Bytes room) {
  Gathering gathered(room);
  for (const ConstBytes piece : pieces.first(std::min(pieces.size(), kMaxPieces)))
    if (!piece.empty()) gathered.add(piece);
  const std::span<iovec> list = gathered.pieces();
  if (list.empty()) return {IoStatus::would_block, 0, 0};
  return handed_over(send_list(tcp_.fd.get(), list));
}

bool TcpStream::allow_zero_copy(size_t from, Counters& counters) {
  // An earlier user has made the kernel count, and may still wait for its notices.
  const bool untouched = socket_option(tcp_.fd.get(), SOL_SOCKET, SO_ZEROCOPY) == 0;
  if (!untouched || !set_socket_option(tcp_.fd.get(), SOL_SOCKET, SO_ZEROCOPY, 1)) return false;
  zero_copy_ = std::make_unique<ZeroCopySender>(from, counters);
  return true;
}

IoResult TcpStream::send_zero_copy(std::span<const ConstBytes> pieces) {
  size_t before = 0;
  while (zero_copy_ && tcp_.fd && zero_copy_->wants(pieces)) {
    const Bytes room = zero_copy_->room();
    if (room.empty()) break;
    Gathering gathered(room);
    pieces = pieces.subspan(gathered.add_zero_copy(pieces));
    const IoResult sent = handed_over(zero_copy_->send(tcp_.fd.get(), gathered.pieces()));
    if (pieces.empty() || sent.bytes < gathered.bytes()) return behind(before, sent);
    before += sent.bytes;
  }
  return behind(before, send(pieces));
}

uint64_t TcpStream::zero_copy_calls() const { return zero_copy_ ? zero_copy_->calls().begun() : 0; }

uint64_t TcpStream::zero_copy_released() {
  if (!zero_copy_) return 0;
  zero_copy_->take_notices(tcp_.fd.get());
  return zero_copy_->calls().released();
}

bool TcpStream::trim() { return zero_copy_ && zero_copy_->calls().trim(); }

IoResult TcpStream::receive(Bytes buffer) {
  if (!tcp_.fd) return {IoStatus::failed, 0, ECONNABORTED};
  if (buffer.empty()) return {IoStatus::would_block, 0, 0};
  return received(uninterrupted(
      [&] { return ::recv(tcp_.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT); }));
}

IoResult TcpStream::receive_into(std::span<const Bytes> buffers) {
  if (!tcp_.fd) return {IoStatus::failed, 0, ECONNABORTED};
  std::array<iovec, kMaxPieces> list;
  const size_t count = std::min(buffers.size(), list.size());
  for (size_t i = 0; i < count; ++i) list[i] = {buffers[i].data(), buffers[i].size()};
  if (count == 0) return {IoStatus::would_block, 0, 0};
  msghdr header{};
  header.msg_iov = list.data();
  header.msg_iovlen = count;
  return received(uninterrupted([&] { return ::recvmsg(tcp_.fd.get(), &header, MSG_DONTWAIT); }));
}

bool TcpStream::leave_engine() {
  zero_copy_.reset();
  return static_cast<bool>(tcp_.fd);
}

void TcpStream::shutdown_send() {
  if (tcp_.fd) ::shutdown(tcp_.fd.get(), SHUT_WR);
}

int TcpStream::error() {
  return tcp_.fd ? socket_option(tcp_.fd.get(), SOL_SOCKET, SO_ERROR) : ECONNABORTED;
}

void TcpStream::abort() {
  if (!tcp_.fd) return;
  reset_connection(std::move(tcp_.fd));
  if (zero_copy_) zero_copy_->calls().release_all();
}

size_t TcpStream::maximum_segment() const {
  const int segment = tcp_.fd ? socket_option(tcp_.fd.get(), IPPROTO_TCP, TCP_MAXSEG) : 0;
  return segment > 0 ? static_cast<size_t>(segment) : kDefaultSegment;
}

bool TcpStream::set_busy_poll(Duration time) { return llp::set_busy_poll(tcp_.fd.get(), time); }

}  // namespace diwarp::llp
