// SPDX-License-Identifier: Apache-2.0
#include "fuzz/request_ledger.h"

#include <algorithm>
#include <string>

#include "fuzz/input.h"

namespace diwarp::fuzz {
namespace {

bool is_receive(WcOpcode opcode) {
  return opcode == WcOpcode::recv || opcode == WcOpcode::recv_immediate;
}

}  // namespace

void RequestLedger::violated(const char* what, uint64_t wr_id) const {
  fail(std::string(name_) + ": " + what + " (wr_id " + std::to_string(wr_id) + ")");
}

void RequestLedger::check(const Request& request, const WorkCompletion& completion) const {
  const bool success = completion.status == WcStatus::success;
  if (request.silent && success) violated("a completion that was not asked for", request.wr_id);
  const bool both_receive = is_receive(request.opcode) && is_receive(completion.opcode);
  if (request.opcode != completion.opcode && !both_receive)
    violated("a completion of another operation", request.wr_id);
  if (completion.opcode == WcOpcode::recv && success && completion.byte_count > request.room)
    violated("a message longer than its receive", request.wr_id);
}

RequestLedger::Request RequestLedger::completed(const WorkCompletion& completion) {
  while (!open_.empty() && open_.front().wr_id != completion.wr_id) {
    if (!open_.front().silent) violated("a completion out of order", completion.wr_id);
    open_.pop_front();
  }
  if (open_.empty()) violated("a completion of nothing that is open", completion.wr_id);
  const Request request = open_.front();
  open_.pop_front();
  check(request, completion);
  return request;
}

RequestLedger::Request RequestLedger::completed_anywhere(const WorkCompletion& completion) {
  const auto found = std::find_if(open_.begin(), open_.end(), [&](const Request& request) {
    return request.wr_id == completion.wr_id;
  });
  if (found == open_.end()) violated("a completion of nothing that is open", completion.wr_id);
  const Request request = *found;
  open_.erase(found);
  check(request, completion);
  return request;
}

void RequestLedger::check_all_completed() const {
  for (const Request& request : open_)
    if (!request.silent) violated("a request without completion", request.wr_id);
}

}  // namespace diwarp::fuzz
