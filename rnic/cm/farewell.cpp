// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/farewell.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "rnic/cm/control.h"

namespace diwarp::rnic {

Farewell::Farewell(boost::asio::io_context& context, UniqueFd connection,
                   std::vector<std::byte> last_words, size_t& alive)
    : alive_(alive),
      socket_(to_asio(context, std::move(connection))),
      timer_(context),
      last_words_(std::move(last_words)) {
  ++alive_;
}

void Farewell::begin() {
  timer_.expires_after(kLingerTime);
  timer_.async_wait([self = shared_from_this()](const AsioError& error) {
    if (!error) self->close();
  });
  // Both at once: a peer that does not read before it has sent would else be waited for in vain.
  write();
  read();
}

void Farewell::write() {
  boost::asio::async_write(
      socket_, boost::asio::buffer(last_words_.data(), last_words_.size()),
      [self = shared_from_this()](const AsioError& error, size_t) { self->on_written(error); });
}

void Farewell::on_written(const AsioError& error) {
  if (error) return close();
  AsioError ignored;
  socket_.shutdown(Tcp::socket::shutdown_send, ignored);
}

void Farewell::read() {
  socket_.async_read_some(boost::asio::buffer(sink_.data(), sink_.size()),
                          [self = shared_from_this()](const AsioError& error, size_t bytes) {
                            self->received_ += bytes;
                            if (error || self->received_ > kLingerBytes) return self->close();
                            self->read();
                          });
}

void Farewell::close() {
  timer_.cancel();
  AsioError ignored;
  socket_.close(ignored);
}

}  // namespace diwarp::rnic
