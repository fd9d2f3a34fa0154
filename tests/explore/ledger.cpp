// SPDX-License-Identifier: Apache-2.0
#include "ledger.h"

#include <algorithm>
#include <utility>

namespace diwarp::explore {

std::vector<std::byte> contents_of(size_t side, size_t operation, size_t length) {
  std::vector<std::byte> bytes(length);
  const size_t key = 1 + side * 101 + operation * 29;
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(key + i * 7 + i / 37);
  return bytes;
}

namespace {

bool same(ConstBytes a, ConstBytes b) { return std::ranges::equal(a, b); }

/// Whether a message that ended so may still be delivered: its datagrams may be on the way longer
/// than the peer is waited for, or than the queue pair was ready to send.
bool may_be_under_way(WcStatus status) {
  return status == WcStatus::retry_exceeded || status == WcStatus::wr_flush_error ||
         status == WcStatus::local_protection_error;
}

bool is_refusal(WcStatus status) {
  return status == WcStatus::remote_access_error || status == WcStatus::remote_operation_error;
}

bool is_memory_operation(const Operation& operation) {
  return operation.kind != OperationKind::send;
}

}  // namespace

Ledger::Ledger(const Scenario& scenario) : receive_bytes_(scenario.receive_bytes()) {
  for (size_t side = 0; side < kSides; ++side)
    for (const Operation& operation : scenario.operations[side])
      entries_[side].push_back({.operation = operation});
}

std::string Ledger::name(size_t side, size_t operation) {
  return std::string(1, name_of_side(side)) + std::to_string(operation + 1);
}

// --- What the applications do.

void Ledger::posted(size_t side, size_t operation) { entries_[side][operation].posted = true; }

void Ledger::happened(const Event& event) {
  switch (event.kind) {
    case EventKind::gone:
    case EventKind::invalidate:
      entries_[event.side][event.operation].memory_gone = true;
      break;
    case EventKind::source:
      entries_[event.side][event.operation].buffer_gone = buffer_gone_[event.side] = true;
      break;
    case EventKind::reset:
    case EventKind::anew:
      restarted_[event.side] = true;
      last_completed_[event.side].reset();
      for (Entry& entry : entries_[event.side])
        entry.vanished = entry.vanished || (entry.posted && !entry.status);
      break;
    case EventKind::pause:
      paused_ = true;
      break;
    case EventKind::narrow:
      narrowed_ = true;
      break;
    case EventKind::untold:
      untold_ = true;
      break;
    case EventKind::hole:
      hole_ = true;
      break;
    case EventKind::post:
    case EventKind::receives:
      break;
  }
}

// --- What they are told.

void Ledger::completed(size_t side, size_t operation, WcStatus status, ConstBytes read) {
  Entry& entry = entries_[side][operation];
  const std::string request = name(side, operation);
  if (entry.status || entry.vanished || !entry.posted)
    return violation(request + " completed although it was over");
  entry.status = status;
  if (last_completed_[side] && *last_completed_[side] > operation)
    violation(request + " completed after a later request");
  last_completed_[side] = operation;
  if (status != WcStatus::success) {
    if (is_refusal(status) && entry.deliveries != 0)
      violation(request + " was refused after it was delivered");
    if (!may_fail(side, entry, status))
      violation(request + " failed with '" + std::string(diwarp::to_string(status)) +
                "' for no reason");
    return;
  }
  if (must_fail(entry)) violation(request + " succeeded although it is wrong");
  const bool is_read = entry.operation.kind == OperationKind::read;
  if (is_read && !same(read, contents_of(side, operation, entry.operation.length())))
    violation(request + " read wrong bytes");
  if (!is_read && entry.deliveries == 0) violation(request + " succeeded but was not delivered");
}

void Ledger::received(size_t side, ConstBytes payload) {
  const size_t from = other(side);
  for (size_t i = 0; i < entries_[from].size(); ++i) {
    const Operation& operation = entries_[from][i].operation;
    if (operation.kind != OperationKind::send || operation.length() != payload.size()) continue;
    if (same(payload, contents_of(from, i, payload.size()))) return deliver(from, i);
  }
  violation("A Send that nobody posted, of " + std::to_string(payload.size()) +
            " bytes, was delivered to " + name_of_side(side));
}

void Ledger::recorded(size_t side, size_t operation, bool complete, uint64_t bytes,
                      ConstBytes placed) {
  const size_t from = other(side);
  Entry& entry = entries_[from][operation];
  const size_t length = entry.operation.length();
  if (!complete || bytes != length) {
    if (entry.deliveries != 0 || entry.delivered_in_part || !may_be_lost(from, entry))
      violation(name(from, operation) + " was delivered in part");
    entry.delivered_in_part = true;
    return;
  }
  if (entry.delivered_in_part)
    violation(name(from, operation) + " was delivered after it was in part");
  if (!same(placed, contents_of(from, operation, length)))
    violation(name(from, operation) + " was delivered with wrong bytes");
  deliver(from, operation);
}

void Ledger::deliver(size_t from, size_t operation) {
  Entry& entry = entries_[from][operation];
  const std::string message = name(from, operation);
  if (!entry.posted) violation(message + " was delivered before it was posted");
  if (++entry.deliveries > 1) violation(message + " was delivered twice");
  if (must_fail(entry)) violation(message + " was delivered although it is wrong");
  if (last_delivered_[from] && *last_delivered_[from] > operation)
    violation(message + " was delivered after a later message");
  last_delivered_[from] = operation;
  if (entry.status && !may_be_under_way(*entry.status))
    violation(message + " was delivered after it was reported as '" +
              std::string(diwarp::to_string(*entry.status)) + "'");
}

// --- The reasons to fail.

bool Ledger::is_too_long(const Operation& operation) const {
  return operation.kind == OperationKind::send && operation.length() > receive_bytes_;
}

bool Ledger::must_fail(const Entry& entry) const {
  const bool names_nothing = entry.operation.flaw == Flaw::stag && entry.operation.datagrams != 0;
  return names_nothing || entry.operation.flaw == Flaw::q_key || is_too_long(entry.operation);
}

/// Why an operation that is right may not be done.
bool Ledger::may_be_lost(size_t side, const Entry& entry) const {
  return expects_restart() || buffer_gone_[side] || buffer_gone_[other(side)] || entry.memory_gone;
}

bool Ledger::may_fail(size_t side, const Entry& entry, WcStatus status) const {
  switch (status) {
    case WcStatus::remote_access_error:
      return is_memory_operation(entry.operation) &&
             (entry.operation.flaw == Flaw::stag || entry.memory_gone);
    case WcStatus::remote_operation_error:
      return entry.operation.flaw == Flaw::q_key || is_too_long(entry.operation);
    case WcStatus::peer_restarted:
      return restarted_[other(side)] || path_changed();
    case WcStatus::local_protection_error:
      return entry.buffer_gone;
    case WcStatus::wr_flush_error:
      return buffer_gone_[side];
    case WcStatus::local_qp_operation_error:
      return untold_ && entry.operation.datagrams > 1;
    case WcStatus::retry_exceeded:  // what has to be sent again does not get through
      return untold_ || hole_;
    default:
      return false;
  }
}

// --- What comes of it.

bool Ledger::all_over() const {
  const auto over = [](const Entry& entry) {
    return entry.posted && (entry.vanished || entry.status);
  };
  return std::ranges::all_of(entries_[0], over) && std::ranges::all_of(entries_[1], over);
}

void Ledger::flushed(size_t side) {
  for (size_t i = 0; i < entries_[side].size(); ++i)
    if (const Entry& entry = entries_[side][i]; entry.posted && !entry.vanished && !entry.status)
      violation(name(side, i) + " was not flushed");
}

void Ledger::finish() {
  for (size_t side = 0; side < kSides; ++side) {
    for (size_t i = 0; i < entries_[side].size(); ++i) {
      const Entry& entry = entries_[side][i];
      if (!entry.vanished && !entry.status) violation(name(side, i) + " never ended");
      const bool counts = entry.operation.kind != OperationKind::read && !must_fail(entry) &&
                          !may_be_lost(side, entry);
      if (counts && entry.deliveries == 0) violation(name(side, i) + " was never delivered");
    }
  }
}

}  // namespace diwarp::explore
