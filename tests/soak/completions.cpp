// SPDX-License-Identifier: Apache-2.0
#include "soak/completions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace soak {

using diwarp::QpState;
using diwarp::QpType;
using diwarp::WcOpcode;
using diwarp::WcStatus;
using diwarp::WorkCompletion;

namespace {

constexpr diwarp::Duration kWait = std::chrono::milliseconds(1);
constexpr size_t kMostFailed = 4096;

bool is_atomic(Operation operation) {
  return operation >= Operation::fetch_add && operation <= Operation::swap;
}
bool names_memory(Operation operation) {
  return operation == Operation::write_record || operation == Operation::read ||
         is_atomic(operation);
}

}  // namespace

void Completions::take_all() {
  take_from(process_.handles.cq, kWait);
  take_from(process_.handles.shared_cq, diwarp::Duration(0));
}

void Completions::take_from(diwarp::CompletionQueue& cq, diwarp::Duration wait) {
  std::array<WorkCompletion, 32> batch;
  size_t count = cq.poll(batch, wait);
  for (int more = 0; count != 0 && more < 8; ++more) {
    for (size_t i = 0; i < count; ++i) take(batch[i]);
    count = cq.poll(batch);
  }
  for (size_t i = 0; i < count; ++i) take(batch[i]);
}

void Completions::drop_all(Line& line) {
  for (Request& request : process_.requests.places()) {
    if (request.id == 0 || request.line != line.place) continue;
    check_withdrawn(request);
    borrowed_.release_reader(request);
    note_failed(request);
    if (request.operation == Operation::bind_window) offers_.window_bound(request.offer, false);
    process_.requests.drop(request);
  }
  line.sends = line.receives = 0;
}

/// Of a shared receive: the line that took it, or the shared receives' own if that is gone.
Line& Completions::line_of_receive(const Request& request, const WorkCompletion& wc) {
  for (Line& line : process_.lines) {
    if (request.line == kSharedPlace && line.qp && line.qp->number() == wc.qp_number) return line;
  }
  return process_.lines[request.line];
}

void Completions::take(const WorkCompletion& wc) {
  if (wc.opcode == WcOpcode::recv_write_record) return arrivals_.record_came(wc);
  Request* request = process_.requests.find(wc.wr_id);
  if (request == nullptr) {
    if (!process_.requests.was_dropped(wc.wr_id))
      process_.ledger.finding(
          "twice", "a completion came for no request: wr_id " + std::to_string(wc.wr_id));
    return;
  }
  Line& line = process_.lines[request->line];
  const bool receive = request->operation == Operation::receive;
  if (!receive && process_.faults.happens_once("stuck")) return;
  --(receive ? line.receives : line.sends);
  if (line.place == kSharedPlace) process_.ledger.count("shared");
  Line& taker = line_of_receive(*request, wc);
  check_status(taker, *request, wc);
  receive ? arrivals_.receive_done(taker, *request, wc) : send_done(line, *request, wc);
  check_withdrawn(*request);
  process_.requests.release(*request);
}

void Completions::check_status(Line& line, const Request& request, const WorkCompletion& wc) {
  const std::string name =
      std::string(to_string(line.type)) + "." + std::string(to_string(request.operation));
  process_.ledger.count("done." + name);
  if (wc.status != WcStatus::success)
    process_.ledger.count("failed." + name + "." + std::string(to_string(wc.status)));
  if (status_allowed(line, request, wc.status)) return;
  process_.ledger.finding(
      "status", name + " of " + std::to_string(request.buffer.bytes().size()) +
                    " bytes ended with '" + std::string(to_string(wc.status)) + "' (vendor_error " +
                    std::to_string(wc.vendor_error) + ", wrong " +
                    std::to_string(static_cast<int>(request.wrong)) + ", withdrawn " +
                    std::to_string(request.withdrawn) + "; " + describe(line) + ")");
}

/// docs/rc.md and docs/datagrams.md, "Errors".
bool Completions::status_allowed(const Line& line, const Request& request, WcStatus status) const {
  const bool receive = request.operation == Operation::receive;
  const bool reads = request.operation == Operation::read || is_atomic(request.operation);
  const bool stream = line.type == QpType::rc, reliable = line.type == QpType::rd;
  const bool refused_aloud = request.wrong != Wrong::nothing && (reliable || reads);
  switch (status) {
    case WcStatus::success:
      return !refused_aloud;
    case WcStatus::wr_flush_error:
      return !line.qp || line.qp->state() == QpState::error ||  // gone: it had begun a shared one
             line.qp->state() == QpState::closing;
    case WcStatus::window_bind_error:  // its region has gone
      return std::ranges::find(process_.offers, request.offer, &Offer::id) == process_.offers.end();
    case WcStatus::local_protection_error:
      return request.withdrawn;
    case WcStatus::local_qp_operation_error:
      return !stream && (process_.settings.limited() || !receive);
    case WcStatus::local_length_error:
    case WcStatus::general_error:
      return stream;
    case WcStatus::remote_access_error:
      return !receive && (reads || (reliable && names_memory(request.operation)));
    case WcStatus::remote_operation_error:
      return !receive && (reads || (reliable && request.wrong == Wrong::length));
    case WcStatus::timeout:
      return line.type == QpType::ud && reads;
    case WcStatus::retry_exceeded:
    case WcStatus::peer_restarted:
      return reliable && !receive;
    default:
      return false;
  }
}

/// Nothing was written into memory after it was deregistered.
void Completions::check_withdrawn(const Request& request) {
  if (!request.withdrawn) return;
  const auto wrong =
      first_wrong(request.buffer.bytes(), process_.own_key(Kind::scribble, request.id));
  if (wrong)
    process_.ledger.wrong_byte(
        "deregistered memory of " + std::string(to_string(request.operation)),
        request.buffer.bytes(), *wrong);
}

void Completions::note_failed(const Request& request) {
  Remote& remote = process_.remotes[request.remote];
  if (request.line != 1 || request.operation != Operation::send || request.number == 0 ||
      remote.life != request.remote_life)
    return;
  remote.failed.insert(request.number);
  if (remote.failed.size() > kMostFailed) remote.failed.erase(remote.failed.begin());
}

void Completions::note_written(const Request& request) {
  Remote& remote = process_.remotes[request.remote];
  if (remote.life != request.remote_life) return;
  remote.written.insert(request.offer);
  if (remote.written.size() > kMostFailed) remote.written.erase(remote.written.begin());
}

void Completions::send_done(Line& line, Request& request, const WorkCompletion& wc) {
  const bool success = wc.status == WcStatus::success;
  if (request.operation == Operation::bind_window)
    return offers_.window_bound(request.offer, success);
  if (request.operation == Operation::read && !request.withdrawn) read_done(request, wc);
  if (is_atomic(request.operation) && success && !request.withdrawn) {
    uint64_t before = 0;
    std::memcpy(&before, request.buffer.bytes().data(), sizeof before);
    if (before != request.value)
      process_.ledger.finding("wrong-byte", "RC: " + std::string(to_string(request.operation)) +
                                                " found " + std::to_string(before) +
                                                " instead of " + std::to_string(request.value));
    process_.ledger.verified(sizeof before);
  }
  if (success && request.passed_over && line.type == QpType::rd)
    process_.ledger.finding("lost", "RD: " + std::string(to_string(request.operation)) + " " +
                                        std::to_string(request.number) +
                                        " was reported as delivered, and was not, or in part");
  if (!success) note_failed(request);
  if (success && line.type == QpType::rd && request.operation == Operation::write_record)
    note_written(request);
  borrowed_.release_reader(request);
}

/// Valid bytes are the peer's; all others are as they were, or the peer's.
void Completions::read_done(Request& request, const WorkCompletion& wc) {
  const std::span<const std::byte> bytes = request.buffer.bytes();
  const uint64_t theirs = process_.key(request.offer_life, Kind::readable, request.offer);
  const bool success = wc.status == WcStatus::success;
  const auto check = [&](uint64_t at, uint64_t length) {
    const auto wrong = first_wrong(bytes.subspan(at, length), theirs, request.at + at);
    if (wrong)
      process_.ledger.wrong_byte(
          "a Read over " + std::string(to_string(process_.lines[request.line].type)), bytes,
          at + *wrong);
    process_.ledger.verified(length);
  };
  if (success) return check(0, bytes.size());
  if (wc.status == WcStatus::timeout) {
    for (const auto range : wc.validity.ranges()) check(range.offset, range.length);
  }
  // Of one that reaches beyond the offer the first parts may come, from elsewhere in it.
  if (request.wrong == Wrong::bounds) return;
  const uint64_t before = process_.own_key(Kind::untouched, request.number);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != byte_at(before, i) && bytes[i] != byte_at(theirs, request.at + i))
      return process_.ledger.wrong_byte("the memory of a Read that failed", bytes, i);
  }
}

}  // namespace soak
