// SPDX-License-Identifier: Apache-2.0
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "llp/network_order.h"
#include "llp/udp/udp_receiver.h"
#include "llp/uring/uring_input.h"
#include "llp/uring/uring_queue.h"

namespace diwarp::llp {
namespace {

constexpr size_t kTrainBytes = size_t{64} << 10;
/// Completions say whose they are: an input's address, or a send's index and this bit.
constexpr uint64_t kSend = 1;

constexpr size_t datagram_buffer_bytes() {
  const size_t all = sizeof(io_uring_recvmsg_out) + UringInput::kNameBytes +
                     UdpReceiver::kControlBytes + kTrainBytes;
  return (all + 63) / 64 * 64;
}

std::string refusal(int error) {
  switch (error) {
    case ENOSYS:
      return "this kernel has no io_uring";
    case EPERM:
    case EACCES:
      return "the system forbids it (a container's seccomp filter, or kernel.io_uring_disabled)";
    case ENOMEM:
      return "the memory lock limit is too small (ulimit -l)";
    default:
      return std::system_category().message(error);
  }
}

/// Asked through an operation of the same release as multishot receives, Linux 6.0.
bool receives_multishot(io_uring& ring) {
  io_uring_probe* probe = io_uring_get_probe_ring(&ring);
  const bool found = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_SEND_ZC) != 0;
  io_uring_free_probe(probe);
  return found;
}

std::string probe() {
  std::string why_not;
  UringQueue::create(
      {.submissions = 2, .completions = 4, .datagram_buffers = 1, .stream_buffers = 1}, why_not);
  return why_not;
}

}  // namespace

const std::string& why_no_uring() {
  static const std::string why_not = probe();
  return why_not;
}

void UringQueue::Close::operator()(io_uring* ring) const {
  if (ring->ring_fd >= 0) io_uring_queue_exit(ring);
  delete ring;
}

std::shared_ptr<UringQueue> UringQueue::create(const UringOptions& options, std::string& why_not) {
  std::shared_ptr<UringQueue> queue(new UringQueue(options));
  why_not = queue->set_up();
  return why_not.empty() ? queue : nullptr;
}

UringQueue::UringQueue(const UringOptions& options)
    : options_(options),
      ring_(new io_uring{}),
      datagrams_(options.datagram_buffers, datagram_buffer_bytes(), 0),
      streams_(options.stream_buffers, options.stream_buffer_bytes, 1) {
  ring_->ring_fd = -1;
}

UringQueue::~UringQueue() = default;

/// Why it cannot be; empty: it can.
std::string UringQueue::set_up() {
  io_uring_params parameters{};
  // Nothing that ties the ring to one thread: the thread that holds the engine changes.
  parameters.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  parameters.cq_entries = options_.completions;
  const int made = io_uring_queue_init_params(options_.submissions, ring_.get(), &parameters);
  if (made != 0) {
    ring_->ring_fd = -1;
    return refusal(-made);
  }
  io_uring_ring_dontfork(ring_.get());
  if ((parameters.features & IORING_FEAT_NODROP) == 0 || !receives_multishot(*ring_))
    return "this kernel's lacks multishot receives (Linux 6.0 has them)";
  for (UringBuffers* buffers : {&datagrams_, &streams_}) {
    if (const int error = buffers->attach(*ring_)) return refusal(error);
  }
  register_files();
  sends_.resize(submissions());
  return {};
}

int UringQueue::descriptor() const { return ring_->ring_fd; }

void UringQueue::gather(bool /*told*/) {
  const std::lock_guard lock(mutex_);
  reap();
  while (UringInput* input = refused_.pop_front()) ready_.push_back(*input);
}

Duration UringQueue::silence() {
  const std::lock_guard lock(mutex_);
  if (!ready_.empty()) return Duration::zero();
  return refused_.empty() ? Duration::max() : kRetry;
}

void* UringQueue::next_ready() {
  const std::lock_guard lock(mutex_);
  UringInput* input = ready_.pop_front();
  return input == nullptr ? nullptr : input->key_;
}

void UringQueue::return_buffers(std::span<const uint16_t> datagram_buffers) {
  const std::lock_guard lock(mutex_);
  datagrams_.give(datagram_buffers);
}

void UringQueue::on_ready(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  on_ready_ = std::move(callback);
}

void UringQueue::nudge() {
  if (on_ready_ && !ready_.empty()) on_ready_();
}

void UringQueue::count(Counter counter) {
  if (options_.counters != nullptr) options_.counters->add_shared(counter);
}

// --- Requests.

unsigned UringQueue::submissions() const { return *ring_->sq.kring_entries; }

/// There is room for submissions() of them, as submit() leaves none behind.
io_uring_sqe& UringQueue::request() { return *io_uring_get_sqe(ring_.get()); }

/// How many of the requests the kernel took. The others, for which it has no memory, are withdrawn:
/// the memory that they refer to may soon be gone.
unsigned UringQueue::submit() {
  const unsigned asked = io_uring_sq_ready(ring_.get());
  order_by_network();
  io_uring_submit(ring_.get());
  const unsigned left = io_uring_sq_ready(ring_.get());
  if (left == 0) return asked;
  count(Counter::uring_refused);
  // The kernel reads the queue in that call alone.
  io_uring_sq& queue = ring_->sq;
  queue.sqe_head = queue.sqe_tail = *queue.khead;
  *queue.ktail = *queue.khead;
  return asked - left;
}

/// Needs no room in the submission queue, and no memory of the kernel's.
void UringQueue::cancel_and_wait(uint64_t owner) {
  io_uring_sync_cancel_reg which{};
  which.addr = owner;
  which.fd = -1;
  which.timeout = {.tv_sec = -1, .tv_nsec = -1};  // none
  io_uring_register_sync_cancel(ring_.get(), &which);
  reap_one_or_wait();
}

// --- Completions.

void UringQueue::reap() {
  io_uring* ring = ring_.get();
  for (;;) {
    const io_uring_cq& queue = ring->cq;
    while (io_uring_cq_ready(ring) != 0) {
      const io_uring_cqe completion = queue.cqes[*queue.khead & *queue.kring_mask];
      io_uring_cq_advance(ring, 1);
      order_by_network();
      dispatch(completion);
    }
    if (!io_uring_cq_has_overflow(ring)) return;
    count(Counter::uring_cq_overflow);
    if (io_uring_get_events(ring) < 0) return;
  }
}

/// Takes at least one completion, if that comes within a short time.
void UringQueue::reap_one_or_wait() {
  __kernel_timespec bound{.tv_sec = 0, .tv_nsec = 10'000'000};
  io_uring_cqe* first = nullptr;
  io_uring_wait_cqe_timeout(ring_.get(), &first, &bound);
  reap();
}

void UringQueue::dispatch(const io_uring_cqe& completion) {
  const uint64_t owner = completion.user_data;
  if (owner == 0) return;  // a cancellation
  if ((owner & kSend) == 0) return reinterpret_cast<UringInput*>(owner)->completed(completion);
  sends_[owner >> 1] = completion.res;
  --sends_outstanding_;
}

// --- Sending.

ssize_t UringQueue::send(const UringFile& file, std::span<mmsghdr> messages) {
  const std::lock_guard lock(mutex_);
  size_t sent = 0;
  while (sent < messages.size()) {
    const auto part = messages.subspan(sent, std::min(sends_.size(), messages.size() - sent));
    if (sent != 0) count(Counter::uring_sq_full);
    const size_t taken = send_part(file, part);
    sent += taken;
    if (taken == part.size()) continue;
    errno = -sends_[taken];
    const bool refused = errno == ECANCELED;  // no message failed, the ring did
    return sent == 0 && !refused ? -1 : static_cast<ssize_t>(sent);
  }
  return static_cast<ssize_t>(sent);
}

/// The requests are a chain, which ends with the first that fails. None blocks, so all of them have
/// ended on return, and the kernel looks at the messages no more.
size_t UringQueue::send_part(const UringFile& file, std::span<mmsghdr> part) {
  for (size_t i = 0; i < part.size(); ++i) {
    io_uring_sqe& entry = request();
    io_uring_prep_sendmsg(&entry, file.number, &part[i].msg_hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
    io_uring_sqe_set_data64(&entry, i << 1 | kSend);
    if (file.registered) entry.flags |= IOSQE_FIXED_FILE;
    if (i + 1 < part.size()) entry.flags |= IOSQE_IO_LINK;
    sends_[i] = -ECANCELED;
  }
  sends_outstanding_ = submit();
  for (reap(); sends_outstanding_ > 0;) reap_one_or_wait();
  const auto results = std::span(sends_).first(part.size());
  const auto failed = std::ranges::find_if(results, [](int result) { return result < 0; });
  return static_cast<size_t>(failed - results.begin());
}

}  // namespace diwarp::llp
