// SPDX-License-Identifier: Apache-2.0
#include "soak/posting.h"

#include <algorithm>
#include <array>

namespace soak {

using diwarp::Access;
using diwarp::Errc;
using diwarp::QpType;
using diwarp::SendWorkRequest;

namespace {

/// Around the ends of segments, pages, and of what a counter of 16 bits holds.
constexpr std::array<size_t, 24> kEdges{0,    1,    2,    7,    8,     47,    48,    49,
                                        63,   64,   65,   512,  1400,  1425,  1426,  1472,
                                        1500, 4096, 8192, 9000, 16383, 32768, 65535, 65536};

}  // namespace

size_t pick_size(diwarp::Random& random, size_t most) {
  const uint64_t kind = random.below(100);
  if (kind < 60) return std::min<size_t>(kEdges[random.below(kEdges.size())], most);
  if (kind < 90) return random.below(std::min<size_t>(most, 8 << 10) + 1);
  if (kind < 98) return random.below(std::min<size_t>(most, 72 << 10) + 1);
  return random.below(most + 1);
}

Request* Posting::prepare(Line& line, uint32_t remote, Operation operation, size_t length,
                          Access access) {
  Request* request = process_.requests.add();
  if (request == nullptr) return nullptr;
  request->operation = operation;
  request->line = line.place;
  request->remote = remote;
  request->remote_life = process_.remotes[remote].life;
  request->posted = process_.clock.now();
  request->buffer = process_.arena.take(length);
  try {
    if (request->buffer) {
      request->buffer.register_at(process_.handles.pd, access);
      return request;
    }
  } catch (const std::exception&) {
    process_.ledger.count("limited.region");
  }
  process_.requests.release(*request);
  return nullptr;
}

bool Posting::post(Line& line, Request& request, SendWorkRequest wr) {
  wr.wr_id = request.id;
  if (line.type != QpType::rc)
    wr.destination = process_.remotes[request.remote].addresses[index_of(line.type)];
  const std::error_code error = line.qp->post_send(wr);
  if (!error) {
    ++line.sends;
    return true;
  }
  if (!refusal_allowed(error))
    process_.ledger.finding("status", std::string(to_string(line.type)) + ": posting " +
                                          std::string(to_string(request.operation)) + " gave " +
                                          error.message());
  process_.requests.release(request);
  return false;
}

bool Posting::refusal_allowed(const std::error_code& error) const {
  return error == Errc::queue_full || error == Errc::invalid_state ||
         (process_.settings.limited() && error == Errc::no_resources);
}

void Posting::post_receives(Line& line) {
  const bool shared = line.place == kSharedPlace;
  if (line.shares) return;
  const uint32_t of_own = line.type == QpType::rc ? kStreamReceives : kDatagramReceives;
  while (line.receives < (shared ? kSharedReceives : of_own)) {
    Request* request =
        prepare(line, line.remote, Operation::receive, kReceiveSize, diwarp::Access::local_write);
    if (request == nullptr) return;
    const diwarp::Sge sge = request->buffer.region().sge();
    const diwarp::ReceiveWorkRequest wr{.wr_id = request->id, .sges = sge};
    if (shared ? process_.handles.shared.post_recv(wr) : line.qp->post_recv(wr))
      return process_.requests.release(*request);
    ++line.receives;
  }
}

}  // namespace soak
