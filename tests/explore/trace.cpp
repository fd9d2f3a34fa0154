// SPDX-License-Identifier: Apache-2.0
#include "trace.h"

#include <chrono>
#include <ostream>

#include "describe.h"

namespace diwarp::explore {

void Trace::tell(const std::string& line) const {
  if (stream_ == nullptr) return;
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - started_);
  *stream_ << "  " << time.count() << " ms  " << line << '\n';
}

void Trace::tell_of(const Datagram& datagram, Fate fate) const {
  if (stream_ == nullptr) return;
  tell(std::to_string(datagram.number) + ' ' + name_of_side(datagram.from) + '>' +
       name_of_side(other(datagram.from)) + "  " + describe(datagram.bytes) +
       (fate == Fate::deliver ? "" : "  *** " + std::string(to_string(fate))));
}

}  // namespace diwarp::explore
