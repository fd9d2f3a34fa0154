// SPDX-License-Identifier: Apache-2.0
#include "fuzz/verbs_completions.h"

#include <algorithm>
#include <array>
#include <span>

namespace diwarp::fuzz {
namespace {

bool is_receive(WcOpcode opcode) {
  return opcode == WcOpcode::recv || opcode == WcOpcode::recv_immediate;
}

}  // namespace

void VerbsCompletions::poll_all() {
  size_t got = 1;
  while (got != 0) {
    got = 0;
    for (const auto& cq : run_.slots.cqs)
      if (cq) got += poll(*cq, SIZE_MAX);
  }
}

size_t VerbsCompletions::poll(VerbsCq& cq, size_t most) {
  std::array<WorkCompletion, 4> batch;
  size_t all = 0;
  while (all < most) {
    const size_t got = cq.cq.poll(std::span(batch).first(std::min(most - all, batch.size())));
    if (got == 0) break;
    for (size_t i = 0; i < got; ++i) take(cq.device, batch[i]);
    all += got;
  }
  return all;
}

void VerbsCompletions::take(unsigned device, const WorkCompletion& completion) {
  if (completion.opcode == WcOpcode::recv_write_record) return;
  const uint64_t number = completion.wr_id >> 32U;
  require(number < run_.posted.ledgers.size(), "a completion of nothing that was posted");
  VerbsLedger& ledger = *run_.posted.ledgers[number];
  ledger.ordered ? ledger.open.completed(completion) : ledger.open.completed_anywhere(completion);
  const auto sink = ledger.sinks.extract(completion.wr_id);
  if (sink && completion.status == WcStatus::success) check_sink(device, sink.mapped(), completion);
}

void VerbsCompletions::check_sink(unsigned device, const VerbsSink& sink,
                                  const WorkCompletion& completion) {
  const auto memory = sink.domain->memory.bytes().subspan(sink.at);
  if (sink.expected)
    require(std::ranges::equal(*sink.expected, memory.first(sink.expected->size())),
            "a Read brought other bytes than the memory's");
  if (!is_receive(completion.opcode) || completion.opcode == WcOpcode::recv_immediate) return;
  const uint64_t to = key_of(device, completion.qp_number);
  require(run_.posted.queue_pairs.contains(to), "a completion names no queue pair");
  run_.posted.messages.delivered(to, memory.first(completion.byte_count));
}

void VerbsCompletions::listen_to_events() {
  const unsigned how = run_.in.u8();
  const size_t device = how % VerbsHosts::kDevices;
  if ((how & 0x80U) != 0) {
    VerbsCq* const cq = run_.pick(run_.slots.cqs);
    if (cq != nullptr) cq->cq.arm((how & 0x40U) != 0), ++armed_;
  } else if ((how & 0x40U) != 0) {
    run_.hosts.events[device].get_event(Duration::zero());
  } else if (run_.hosts.channels[device].get_event(Duration::zero())) {
    require(armed_ != 0, "a notification came that nobody asked for");
    --armed_;
  }
}

}  // namespace diwarp::fuzz
