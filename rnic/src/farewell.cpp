// SPDX-License-Identifier: Apache-2.0
#include "farewell.h"

#include <boost/asio/buffer.hpp>

#include "rnic/control.h"

namespace diwarp::rnic {

Farewell::Farewell(boost::asio::io_context& context, UniqueFd connection, size_t& alive)
    : alive_(alive), socket_(to_asio(context, std::move(connection))), timer_(context) {
  ++alive_;
}

void Farewell::begin() {
  timer_.expires_after(kLingerTime);
  timer_.async_wait([self = shared_from_this()](const AsioError& error) {
    if (!error) self->close();
  });
  read();
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
