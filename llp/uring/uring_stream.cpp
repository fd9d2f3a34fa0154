// SPDX-License-Identifier: Apache-2.0
#include "llp/uring/uring_stream.h"

#include <algorithm>
#include <utility>

#include "llp/uring/uring_input.h"

namespace diwarp::llp {

std::unique_ptr<UringStream> UringStream::adopt(std::shared_ptr<UringQueue> queue,
                                                int connected_descriptor) {
  const auto stream = TcpStream::adopt(connected_descriptor);
  return over(std::move(queue), UniqueFd(stream->release()), stream->peer_address());
}

std::unique_ptr<UringStream> UringStream::over(std::shared_ptr<UringQueue> queue,
                                               UniqueFd connected, const Address& peer) {
  return std::unique_ptr<UringStream>(
      new UringStream(std::move(queue), std::move(connected), peer));
}

UringStream::UringStream(std::shared_ptr<UringQueue> queue, UniqueFd connected, const Address& peer)
    : TcpStream(std::move(connected), peer),
      input_(
          std::make_unique<UringInput>(std::move(queue), descriptor(), UringInput::Kind::stream)) {}

UringStream::~UringStream() {
  if (!input_) return;
  input_->stop();
  // The kernel resets connections of which it has unread bytes; these here it does not know of.
  if (!front_.empty() || input_->has_pieces()) abort();
}

InputQueue* UringStream::input_queue() const { return input_ ? input_->queue().get() : nullptr; }

void UringStream::set_key(void* key) {
  if (input_) input_->set_key(key);
}

void UringStream::stop_ring_input() {
  if (!front_.empty()) input_->give_back(front_buffer_);
  front_ = {};
  input_.reset();
}

void UringStream::abort() {
  stop_ring_input();
  TcpStream::abort();
}

bool UringStream::leave_engine() {
  stop_ring_input();
  return TcpStream::leave_engine();
}

int UringStream::release() {
  stop_ring_input();
  return TcpStream::release();
}

bool UringStream::allow_zero_copy(size_t /*from*/, Counters& /*counters*/) { return false; }

IoResult UringStream::receive(Bytes buffer) {
  if (!input_ || buffer.empty()) return TcpStream::receive(buffer);
  const size_t bytes = receive_pieces(buffer);
  if (bytes != 0) return {IoStatus::ok, bytes, 0};
  if (input_->brings_next()) return {IoStatus::would_block, 0, 0};
  if (broken_ == 0) broken_ = input_->error();
  if (broken_ != 0) return {IoStatus::failed, 0, broken_};
  return receive_directly(buffer);
}

IoResult UringStream::receive_into(std::span<const Bytes> buffers) {
  return Stream::receive_into(buffers);  // not past what the ring has brought
}

size_t UringStream::receive_pieces(Bytes buffer) {
  size_t filled = 0;
  UringInput::Piece piece;
  while (filled < buffer.size()) {
    if (front_.empty()) {
      if (input_->take({&piece, 1}) == 0) break;
      front_ = piece.bytes;
      front_buffer_ = piece.buffer;
    }
    filled += receive_front(buffer.subspan(filled));
  }
  if (filled != 0) input_->announce_rest(!front_.empty());
  return filled;
}

size_t UringStream::receive_front(Bytes buffer) {
  const ConstBytes part = front_.first(std::min(front_.size(), buffer.size()));
  std::ranges::copy(part, buffer.begin());
  front_ = front_.subspan(part.size());
  if (front_.empty()) input_->give_back(front_buffer_);
  return part.size();
}

void UringStream::settle() {
  if (input_) input_->settle();
}

int UringStream::error() { return broken_ != 0 ? broken_ : TcpStream::error(); }

/// Nothing comes from the ring: the rest is in the socket.
IoResult UringStream::receive_directly(Bytes buffer) {
  const IoResult result = TcpStream::receive(buffer);
  broken_ = result.error;
  if (result.status == IoStatus::would_block)
    input_->arm();
  else
    input_->announce_rest();
  return result;
}

}  // namespace diwarp::llp
