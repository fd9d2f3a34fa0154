// SPDX-License-Identifier: Apache-2.0
#include "stack/unix/unix_datagrams.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "diwarp/error.h"
#include "llp/network_order.h"
#include "stack/unix/unix_name.h"

namespace diwarp::test {

namespace {

constexpr llp::Degradation kBufferCut{
    Counter::tx_buffer_cut, "a Unix-domain socket has less send buffer than was asked for", true};
constexpr size_t kMaxPieces = IOV_MAX;

/// False where the system gives less.
bool set_send_buffer(int fd, size_t bytes) {
  const int wanted = static_cast<int>(std::min<size_t>(bytes, INT_MAX / 2));
  int given = 0;
  socklen_t length = sizeof given;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted);
  ::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &given, &length);
  return given / 2 >= wanted;
}

/// 0, or an errno.
int send_one(int fd, const llp::OutgoingDatagram& datagram) {
  if (datagram.pieces.size() > kMaxPieces) return EMSGSIZE;
  std::array<iovec, kMaxPieces> list;
  for (size_t i = 0; i < datagram.pieces.size(); ++i)
    list[i] = {const_cast<std::byte*>(datagram.pieces[i].data()), datagram.pieces[i].size()};
  UnixName to = unix_name(SOCK_DGRAM, datagram.to);
  msghdr message{};
  message.msg_name = to.get();
  message.msg_namelen = to.length;
  message.msg_iov = list.data();
  message.msg_iovlen = datagram.pieces.size();
  llp::order_by_network();
  return ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ? 0 : errno;
}

bool is_full(int error) { return error == EAGAIN || error == ENOBUFS || error == ENOMEM; }

/// It is lost, as on a network.
bool is_gone(int error) { return error == ECONNREFUSED || error == ENOENT || error == ECONNRESET; }

}  // namespace

UnixDatagramLink::UnixDatagramLink(const Address& local, size_t send_buffer)
    : fd_(open_unix(SOCK_DGRAM)) {
  local_ = bind_unix(fd_.get(), SOCK_DGRAM, local);
  if (local_.port() == 0 && errno == EADDRINUSE)
    throw Error(make_error_code(Errc::address_in_use), local.to_string() + " is in use");
  if (local_.port() == 0)
    throw Error(std::error_code(errno, std::system_category()),
                "No Unix-domain socket could be bound to " + local.to_string());
  buffer_cut_ = send_buffer != 0 && !set_send_buffer(fd_.get(), send_buffer);
}

llp::SendResult UnixDatagramLink::send(std::span<const llp::OutgoingDatagram> burst) {
  llp::SendResult result;
  for (const llp::OutgoingDatagram& datagram : burst) {
    const int error = send_one(fd_.get(), datagram);
    if (is_full(error)) return {result.sent, llp::SendStatus::would_block, 0};
    if (error != 0 && !is_gone(error)) return {result.sent, llp::SendStatus::refused, error};
    ++result.sent;
  }
  return result;
}

size_t UnixDatagramLink::receive(llp::ReceiveBatch& batch) {
  batch.clear();
  while (batch.room() != 0 && batch.datagrams().size() < batch.slots()) {
    const Bytes slot = batch.slot(batch.datagrams().size());
    UnixName from;
    from.length = sizeof from.name;
    const ssize_t bytes =
        ::recvfrom(fd_.get(), slot.data(), slot.size(), MSG_DONTWAIT, from.get(), &from.length);
    if (bytes < 0) break;
    llp::order_by_network();
    batch.add(test::address_of(from), slot.first(static_cast<size_t>(bytes)));
  }
  return batch.datagrams().size();
}

void UnixDatagramLink::on_degradation(std::function<void(const llp::Degradation&)> callback) {
  if (buffer_cut_ && callback) callback(kBufferCut);
}

}  // namespace diwarp::test
