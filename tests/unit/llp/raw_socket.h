// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "diwarp/address.h"
#include "llp/datagram_link.h"
#include "llp/input_queue.h"
#include "unit/llp/network_namespace.h"

namespace diwarp::test {

/// What recvmsg says of one UDP message.
struct RawMessage {
  std::string bytes;
  Address from;
  int segment = 0;  ///< UDP_GRO: the size of each datagram of a train; 0: one datagram
};

/// A UDP socket without any of the library's sending and receiving. Reads wait at most 5 s.
class RawUdp {
 public:
  explicit RawUdp(const Address& local = Address::loopback(AddressFamily::ipv4));

  int fd() const { return fd_.get(); }
  int release() { return fd_.release(); }
  Address address() const;

  /// False when the kernel cannot coalesce.
  bool coalesce();
  void connect(const Address& to);
  bool send(const Address& to, std::string_view bytes, int segment = 0);
  std::optional<RawMessage> receive();
  /// False when nothing waits now.
  bool readable() const;

 private:
  UniqueFd fd_;
};

/// A connected pair of TCP sockets over loopback, blocking, reads bounded to 5 s. `segment` limits
/// the first one's segments, in bytes.
std::pair<UniqueFd, UniqueFd> tcp_pair(int segment = 0);

/// Closes a TCP socket with a reset.
void reset_connection(UniqueFd fd);

/// Reads exactly `size` bytes, or fewer at the end of the stream.
std::string read_bytes(int fd, size_t size);

/// Whether a kernel with these abilities makes and takes trains; else prints that the case is
/// skipped.
bool has_trains(bool segments, bool coalesces = true);

int option_of(int fd, int level, int name);
bool is_open(int fd);
bool wait_readable(int fd);

/// Waits up to 5 s for a link or a stream to have input.
template <class Link>
bool wait_input(Link& link) {
  llp::InputQueue* queue = link.input_queue();
  if (queue == nullptr) return wait_readable(link.descriptor());
  link.set_key(&link);
  do {
    queue->gather(true);
    while (void* key = queue->next_ready()) {
      if (key == &link) return true;
    }
  } while (wait_readable(queue->descriptor()));
  return false;
}

/// Receives until `count` datagrams came or 5 s passed.
std::vector<std::string> receive_texts(llp::DatagramLink& link, llp::ReceiveBatch& batch,
                                       size_t count);

}  // namespace diwarp::test
