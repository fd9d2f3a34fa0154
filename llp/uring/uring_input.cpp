// SPDX-License-Identifier: Apache-2.0
#include "llp/uring/uring_input.h"

#include <liburing.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "llp/udp/udp_receiver.h"

namespace diwarp::llp {
namespace {

/// The header of every receive: how much room its parts have. The kernel only reads it.
msghdr& layout() {
  static msghdr header = [] {
    msghdr made{};
    made.msg_namelen = UringInput::kNameBytes;
    made.msg_controllen = UdpReceiver::kControlBytes;
    return made;
  }();
  return header;
}

/// Whether a request that ended so says nothing about the stream.
bool is_harmless(int error) {
  return error == ENOBUFS || error == ECANCELED || error == EAGAIN || error == EINTR ||
         error == ENOMEM;
}

}  // namespace

UringInput::UringInput(std::shared_ptr<UringQueue> queue, int fd, Kind kind)
    : queue_(std::move(queue)),
      buffers_(kind == Kind::datagrams ? queue_->datagrams_ : queue_->streams_),
      kind_(kind) {
  const std::lock_guard lock(queue_->mutex_);
  file_ = queue_->enlist(fd);
  start();
}

void UringInput::stop() {
  const std::lock_guard lock(queue_->mutex_);
  key_ = nullptr;
  unlink();
  end_request();
  queue_->dismiss(std::exchange(file_, {}));
  queue_->nudge();
}

void UringInput::settle() {
  const std::lock_guard lock(queue_->mutex_);
  end_request();
}

UringInput::~UringInput() {
  stop();
  const std::lock_guard lock(queue_->mutex_);
  for (; pieces_ > 0; --pieces_) {
    const uint16_t buffer = std::exchange(first_, buffers_.filled(first_).next);
    buffers_.give({&buffer, 1});
  }
}

// --- The owner's side.

size_t UringInput::take(std::span<Piece> pieces) {
  const std::lock_guard lock(queue_->mutex_);
  if (pieces_ == 0) queue_->reap();
  const size_t count = std::min<size_t>(pieces.size(), pieces_);
  for (Piece& piece : pieces.first(count)) {
    const UringBuffers::Filled filled = buffers_.filled(first_);
    piece = {first_, buffers_.bytes(first_).first(filled.bytes)};
    first_ = filled.next;
    --pieces_;
  }
  if (count > 0 && (pieces_ > 0 || state_ == State::idle)) announce();
  return count;
}

void UringInput::give_back(uint16_t buffer) {
  const std::lock_guard lock(queue_->mutex_);
  buffers_.give({&buffer, 1});
}

bool UringInput::brings_next() {
  const std::lock_guard lock(queue_->mutex_);
  return state_ != State::idle || pieces_ > 0;
}

void UringInput::arm() {
  const std::lock_guard lock(queue_->mutex_);
  if (state_ == State::idle) start();
}

void UringInput::announce_rest(bool of_owner) {
  const std::lock_guard lock(queue_->mutex_);
  if (of_owner || pieces_ > 0 || state_ == State::idle) announce();
}

int UringInput::error() {
  const std::lock_guard lock(queue_->mutex_);
  return error_;
}

bool UringInput::has_pieces() {
  const std::lock_guard lock(queue_->mutex_);
  return pieces_ > 0;
}

void UringInput::set_key(void* key) {
  const std::lock_guard lock(queue_->mutex_);
  if (key_ == key) return;
  key_ = key;
  unlink();
  if (pieces_ > 0 || state_ == State::idle) announce();
}

Bytes UringInput::unpack(const Piece& piece, msghdr& header) {
  header = {};
  io_uring_recvmsg_out* out = io_uring_recvmsg_validate(
      piece.bytes.data(), static_cast<int>(piece.bytes.size()), &layout());
  if (out == nullptr) return {};
  header.msg_name = io_uring_recvmsg_name(out);
  header.msg_namelen = std::min<socklen_t>(out->namelen, kNameBytes);
  header.msg_control = static_cast<std::byte*>(header.msg_name) + kNameBytes;
  header.msg_controllen = std::min<size_t>(out->controllen, UdpReceiver::kControlBytes);
  auto* payload = static_cast<std::byte*>(io_uring_recvmsg_payload(out, &layout()));
  const auto length =
      io_uring_recvmsg_payload_length(out, static_cast<int>(piece.bytes.size()), &layout());
  return {payload, length};
}

// --- The queue's side, with its mutex.

/// Without a buffer the kernel would end the request at once, so it only tells when input has come.
void UringInput::start() {
  const bool has_buffer = buffers_.free() != 0;
  io_uring_sqe& entry = queue_->request();
  if (!has_buffer)
    io_uring_prep_poll_add(&entry, file_.number, POLLIN);
  else if (kind_ == Kind::datagrams)
    io_uring_prep_recvmsg_multishot(&entry, file_.number, &layout(), 0);
  else
    io_uring_prep_recv_multishot(&entry, file_.number, nullptr, 0, 0);
  if (has_buffer) {
    entry.flags |= IOSQE_BUFFER_SELECT;
    entry.buf_group = buffers_.group();
  }
  if (file_.registered) entry.flags |= IOSQE_FIXED_FILE;
  io_uring_sqe_set_data(&entry, this);
  if (queue_->submit() != 1) return put_off();
  state_ = State::armed;
  if (!has_buffer) queue_->count(Counter::uring_no_buffers);
  if (std::exchange(has_ended_, false)) queue_->count(Counter::uring_rearmed);
}

void UringInput::end_request() {
  while (state_ != State::idle) queue_->cancel_and_wait(reinterpret_cast<uintptr_t>(this));
}

/// Where the kernel refuses, it goes on, and is cancelled at the next completion.
void UringInput::cancel() {
  io_uring_sqe& entry = queue_->request();
  io_uring_prep_cancel(&entry, this, 0);
  io_uring_sqe_set_data64(&entry, 0);  // its own end is nobody's
  if (queue_->submit() == 1) state_ = State::ending;
}

void UringInput::completed(const io_uring_cqe& completion) {
  if ((completion.flags & IORING_CQE_F_BUFFER) != 0) {
    const auto buffer = static_cast<uint16_t>(completion.flags >> IORING_CQE_BUFFER_SHIFT);
    buffers_.taken();
    if (completion.res > 0)
      append(buffer, static_cast<uint32_t>(completion.res));
    else
      buffers_.give({&buffer, 1});
  }
  if ((completion.flags & IORING_CQE_F_MORE) == 0) ended(completion.res);
  if (greedy()) cancel();
  announce();
}

/// A stream that is not read, or brings more than one call reads, must not take the buffers from
/// all others.
bool UringInput::greedy() const {
  return kind_ == Kind::stream && state_ == State::armed && pieces_ > buffers_.count() / 8;
}

void UringInput::ended(int result) {
  state_ = State::idle;
  has_ended_ = true;
  if (result == -ENOBUFS) queue_->count(Counter::uring_no_buffers);
  if (result < 0 && kind_ == Kind::stream && !is_harmless(-result)) error_ = -result;
}

void UringInput::append(uint16_t buffer, uint32_t bytes) {
  buffers_.filled(buffer) = {bytes, 0};
  if (pieces_ == 0)
    first_ = buffer;
  else
    buffers_.filled(last_).next = buffer;
  last_ = buffer;
  ++pieces_;
}

void UringInput::announce() {
  if (key_ != nullptr && !linked()) queue_->ready_.push_back(*this);
}

void UringInput::put_off() {
  if (key_ != nullptr && !linked()) queue_->refused_.push_back(*this);
}

}  // namespace diwarp::llp
