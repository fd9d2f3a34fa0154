// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "llp/datagram_link.h"
#include "support/bytes.h"

namespace diwarp::test {

/// A burst that owns its bytes; each datagram is one piece.
class Burst {
 public:
  void add(const Address& to, std::string payload) {
    payloads_.push_back(std::move(payload));
    pieces_.push_back(bytes_of(payloads_.back()));
    datagrams_.push_back({to, {&pieces_.back(), 1}});
  }

  std::span<const llp::OutgoingDatagram> get() const { return datagrams_; }

 private:
  std::deque<std::string> payloads_;  // which do not move, nor do the pieces
  std::deque<ConstBytes> pieces_;
  std::vector<llp::OutgoingDatagram> datagrams_;
};

/// So many different texts.
inline std::vector<std::string> numbered(size_t count) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) texts.push_back("number " + std::to_string(i));
  return texts;
}

inline Burst burst_of(const Address& to, const std::vector<std::string>& payloads) {
  Burst burst;
  for (const std::string& payload : payloads) burst.add(to, payload);
  return burst;
}

inline llp::SendResult send_one(llp::DatagramLink& link, const Address& to, std::string_view text) {
  const ConstBytes piece = bytes_of(text);
  const llp::OutgoingDatagram datagram = {to, {&piece, 1}};
  return link.send({&datagram, 1});
}

inline std::vector<std::string> texts(const llp::ReceiveBatch& batch) {
  std::vector<std::string> result;
  for (const llp::IncomingDatagram& datagram : batch.datagrams()) {
    result.push_back(text_of(datagram.bytes));
  }
  return result;
}

}  // namespace diwarp::test
