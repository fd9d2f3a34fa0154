// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/lingering_close.h"

#include <span>
#include <utility>

#include "rnic/cm/control.h"

namespace diwarp::rnic {

LingeringClose::LingeringClose(boost::asio::io_context& context,
                               std::unique_ptr<llp::Stream> stream,
                               std::vector<std::byte> final_bytes, size_t& alive)
    : alive_(alive),
      stream_(std::move(stream)),
      readiness_(context),
      timer_(context),
      final_bytes_(std::move(final_bytes)) {
  ++alive_;
}

void LingeringClose::begin() {
  readiness_.watch(stream_->descriptor());
  timer_.expires_after(kLingeringCloseTime);
  timer_.async_wait([self = shared_from_this()](const AsioError& error) {
    if (!error) self->close();
  });
  // Both at once: a peer that does not read before it has sent would else be waited for in vain.
  write();
  read();
}

void LingeringClose::write() {
  if (!stream_) return;
  const ConstBytes left = std::span(final_bytes_).subspan(sent_);
  if (left.empty()) return stream_->shutdown_send();
  const llp::IoResult result = stream_->send({&left, 1});
  if (result.status == llp::IoStatus::failed) return close();
  sent_ += result.bytes;
  if (sent_ == final_bytes_.size()) return stream_->shutdown_send();
  readiness_.until_writable([self = shared_from_this()](const AsioError& error) {
    error ? self->close() : self->write();
  });
}

void LingeringClose::read() {
  if (!stream_) return;
  readiness_.until_readable([self = shared_from_this()](const AsioError& error) {
    error ? self->close() : self->on_readable();
  });
}

void LingeringClose::on_readable() {
  if (!stream_) return;
  const llp::IoResult came = stream_->receive(sink_);
  received_ += came.bytes;
  const bool over = came.status == llp::IoStatus::closed || came.status == llp::IoStatus::failed;
  if (over || received_ > kLingeringCloseBytes) return close();
  read();
}

void LingeringClose::close() {
  timer_.cancel();
  readiness_.reset();
  stream_.reset();
}

}  // namespace diwarp::rnic
