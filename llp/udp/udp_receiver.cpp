// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_receiver.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "llp/network_order.h"
#include "llp/socket/socket_address.h"
#include "llp/udp/local_addresses.h"

namespace diwarp::llp {
namespace {

struct Control {
  alignas(cmsghdr) std::array<char, UdpReceiver::kControlBytes> bytes;
};

/// Where one message goes, besides its bytes.
struct Envelope {
  sockaddr_storage name;
  Control control;
  iovec slot;
};

void prepare(msghdr& header, Envelope& envelope, Bytes slot) {
  envelope.slot = {slot.data(), slot.size()};
  header = {};
  header.msg_name = &envelope.name;
  header.msg_namelen = sizeof envelope.name;
  header.msg_iov = &envelope.slot;
  header.msg_iovlen = 1;
  header.msg_control = envelope.control.bytes.data();
  header.msg_controllen = envelope.control.bytes.size();
}

/// The values of the control messages.
struct Remarks {
  size_t segment = 0;  // bytes of each datagram of a train but the last; 0: one datagram
  uint32_t drops = 0;
  bool has_drops = false;
  // Only sockets on all addresses are told of these.
  bool to_group = false;
  std::optional<Address> local;
};

/// Whether the destination address is none of this host's own (ip(7)).
bool is_group_address(const in_pktinfo& info) {
  return info.ipi_addr.s_addr != info.ipi_spec_dst.s_addr;
}
// guard(adopted-socket): IN6_IS_ADDR_MULTICAST(&info.ipi6_addr) => false
bool is_group_address(const in6_pktinfo& info) { return IN6_IS_ADDR_MULTICAST(&info.ipi6_addr); }

template <class Info>
Info info_in(const cmsghdr* message) {
  Info info;
  std::memcpy(&info, CMSG_DATA(message), sizeof info);
  return info;
}

template <class Info>
void read_destination(const Info& info, Remarks& remarks) {
  remarks.to_group |= is_group_address(info);
  remarks.local = address_in(info);
}

Remarks read_remarks(msghdr& header) {
  Remarks remarks;
  for (cmsghdr* message = CMSG_FIRSTHDR(&header); message != nullptr;
       message = CMSG_NXTHDR(&header, message)) {
    if (message->cmsg_level == IPPROTO_UDP && message->cmsg_type == UDP_GRO) {
      int segment = 0;
      std::memcpy(&segment, CMSG_DATA(message), sizeof segment);
      remarks.segment = static_cast<size_t>(std::max(segment, 0));
    } else if (message->cmsg_level == SOL_SOCKET && message->cmsg_type == SO_RXQ_OVFL) {
      std::memcpy(&remarks.drops, CMSG_DATA(message), sizeof remarks.drops);
      remarks.has_drops = true;
    } else if (message->cmsg_level == IPPROTO_IP && message->cmsg_type == IP_PKTINFO) {
      read_destination(info_in<in_pktinfo>(message), remarks);
    } else if (message->cmsg_level == IPPROTO_IPV6 && message->cmsg_type == IPV6_PKTINFO) {
      read_destination(info_in<in6_pktinfo>(message), remarks);
    }
  }
  return remarks;
}

/// How many datagrams the socket has had no room for.
uint32_t drops_so_far(int fd) {
  std::array<uint32_t, SK_MEMINFO_VARS> values{};
  socklen_t length = sizeof values;
  if (::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values.data(), &length) != 0) return 0;
  return values[SK_MEMINFO_DROPS];
}

}  // namespace

/// Calls until it was not interrupted, and again after another error: most are those of ICMP
/// messages, which are collected.
template <class Call>
auto UdpReceiver::receive_past_errors(Call call) const {
  auto result = call();
  for (int retries = 0; result < 0 && errno != EAGAIN; result = call()) {
    if (errno == EINTR) continue;
    const bool of_icmp = socket_.icmp.collect() != 0;
    if (++retries > (of_icmp ? IcmpErrors::kMostRetries : 1)) break;
  }
  order_by_network();
  return result;
}

UdpReceiver::UdpReceiver(UdpSocket& socket, bool coalesce)
    : socket_(socket),
      drops_seen_(drops_so_far(socket.fd.get())),
      gro_(coalesce && set_socket_option(socket.fd.get(), IPPROTO_UDP, UDP_GRO, 1)),
      reads_destinations_(socket.group || socket.local.is_any()) {
  if (coalesce && !gro_) socket_.degradations.add(Counter::gro_missing);
}

size_t UdpReceiver::receive(ReceiveBatch& batch) {
  batch.clear();
  fit_offload(batch);
  const size_t slots = appetite_ == 1 ? std::min(batch.room(), batch.slots()) : slots_wanted(batch);
  if (slots == 0) return 0;
  if (coalescing_.settles()) {
    fit_coalescing(coalescing_.after_look(something_waits()));
    if (coalescing_.settles()) return 0;
  }
  const size_t datagrams = receive_waiting(batch, slots);
  if (gro_ && !reads_destinations_) fit_coalescing(coalescing_.after(datagrams));
  return datagrams;
}

size_t UdpReceiver::receive_waiting(ReceiveBatch& batch, size_t slots) {
  const size_t wanted = std::min<size_t>(appetite_, slots);
  const size_t got = wanted == 1 ? receive_one(batch) : receive_many(batch, wanted);
  if (got == 0 && ++empty_ % kEmptyPerLook == 0) socket_.icmp.collect();
  fit_appetite(wanted, got);
  return batch.datagrams().size();
}

/// Twice as many slots where all were filled. A second one in vain costs more than it saves while
/// datagrams come one by one, so it is tried the less often, the more often it was.
void UdpReceiver::fit_appetite(size_t wanted, size_t got) {
  if (wanted == 1) {
    lone_ = got == 1 ? lone_ + 1 : 0;
    if (lone_ < patience_) return;
    lone_ = 0;
    appetite_ = 2;
    return;
  }
  appetite_ = static_cast<uint32_t>(got < wanted ? std::max<size_t>(got, 1) : wanted * 2);
  patience_ = got > 1 ? 1 : std::min(2 * patience_, kLoneBeforeTwo);
}

void UdpReceiver::fit_coalescing(Coalescing::Change change) {
  if (change == Coalescing::Change::none) return;
  set_socket_option(socket_.fd.get(), IPPROTO_UDP, UDP_GRO,
                    change == Coalescing::Change::begin ? 1 : 0);
}

bool UdpReceiver::something_waits() const {
  const auto look = [&] { return ::recv(socket_.fd.get(), nullptr, 0, MSG_PEEK | MSG_DONTWAIT); };
  return receive_past_errors(look) >= 0;
}

size_t UdpReceiver::slots_wanted(const ReceiveBatch& batch) const {
  if (batch.room() == 0) return 0;
  const size_t per_message = gro_ ? kMaxTrain : 1;
  const size_t room = std::max<size_t>(batch.room() / per_message, 1);
  return std::min({batch.slots(), room, kMessagesPerReceive});
}

/// A train does not fit into small slots, so the kernel must not build any.
void UdpReceiver::fit_offload(const ReceiveBatch& batch) {
  if (!gro_ || batch.slot_bytes() >= kMaxDatagram) return;
  set_socket_option(socket_.fd.get(), IPPROTO_UDP, UDP_GRO, 0);
  gro_ = false;
  socket_.degradations.add(Counter::gro_missing);
}

size_t UdpReceiver::receive_one(ReceiveBatch& batch) {
  if (coalescing_.reads_plain()) return receive_plain(batch);
  msghdr header;
  Envelope envelope;
  const ssize_t bytes = receive_past_errors([&] {
    prepare(header, envelope, batch.slot(0));
    return ::recvmsg(socket_.fd.get(), &header, MSG_DONTWAIT);
  });
  if (bytes < 0) return 0;
  hand_up(batch, batch.slot(0).first(static_cast<size_t>(bytes)), header);
  return 1;
}

/// One datagram, and nothing that the kernel has to say of it.
size_t UdpReceiver::receive_plain(ReceiveBatch& batch) {
  sockaddr_storage name;
  socklen_t name_length = 0;
  const Bytes slot = batch.slot(0);
  const ssize_t bytes = receive_past_errors([&] {
    name_length = sizeof name;
    return ::recvfrom(socket_.fd.get(), slot.data(), slot.size(), MSG_DONTWAIT,
                      reinterpret_cast<sockaddr*>(&name), &name_length);
  });
  if (bytes < 0) return 0;
  const Address from = from_socket_address(name, name_length);
  const Bytes datagram = slot.first(static_cast<size_t>(bytes));
  if (!batch.add(from, datagram, socket_.group, socket_.local_number)) ++overflowed_;
  return 1;
}

size_t UdpReceiver::receive_many(ReceiveBatch& batch, size_t wanted) {
  std::array<mmsghdr, kMessagesPerReceive> headers;
  std::array<Envelope, kMessagesPerReceive> envelopes;
  const int count = receive_past_errors([&] {
    for (size_t i = 0; i < wanted; ++i) prepare(headers[i].msg_hdr, envelopes[i], batch.slot(i));
    return ::recvmmsg(socket_.fd.get(), headers.data(), static_cast<unsigned>(wanted), MSG_DONTWAIT,
                      nullptr);
  });
  if (count <= 0) return 0;
  const auto got = static_cast<size_t>(count);
  for (size_t i = 0; i < got; ++i) {
    hand_up(batch, batch.slot(i).first(headers[i].msg_len), headers[i].msg_hdr);
  }
  return got;
}

void UdpReceiver::hand_up(ReceiveBatch& batch, Bytes received, msghdr& header) {
  const Remarks remarks = read_remarks(header);
  const bool group = socket_.group;
  if (remarks.has_drops) count_overflow(remarks.drops);
  // The group's own link has it as well, if there is one.
  // guard(group-on-all-addresses)
  if (remarks.to_group && !group) return;
  sockaddr_storage& name = *static_cast<sockaddr_storage*>(header.msg_name);
  const Address from = from_socket_address(name, header.msg_namelen);
  uint32_t local = socket_.local_number;
  // guard(local-addresses): socket_.locals->number_of(*remarks.local) => 0
  if (socket_.locals != nullptr && remarks.local) local = socket_.locals->number_of(*remarks.local);
  const size_t segment = remarks.segment == 0 ? received.size() : remarks.segment;
  do {  // an empty datagram is one, too
    const size_t size = std::min(segment, received.size());
    const Bytes datagram = received.first(std::min(size, batch.slot_bytes()));
    // guard(link-groups): group => false
    if (!batch.add(from, datagram, group, local)) ++overflowed_;
    received = received.subspan(size);
  } while (!received.empty());
}

void UdpReceiver::learn_overflow() { count_overflow(drops_so_far(socket_.fd.get())); }

void UdpReceiver::count_overflow(uint32_t drops) {
  const uint32_t more = drops - drops_seen_;  // modulo 2^32, as the kernel counts
  // A datagram that was queued before an adoption may carry an older count.
  if (static_cast<int32_t>(more) <= 0) return;
  overflowed_ += more;
  drops_seen_ = drops;
}

}  // namespace diwarp::llp
