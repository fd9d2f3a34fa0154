// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include "soak/arrivals.h"
#include "soak/borrowed.h"
#include "soak/offers.h"
#include "soak/process.h"

namespace soak {

/// The completions of requests, and whether they may be so.
class Completions {
 public:
  Completions(Process& process, Offers& offers, Borrowed& borrowed)
      : process_(process), offers_(offers), borrowed_(borrowed), arrivals_(process, offers) {}

  void take_all();
  void take_from(diwarp::CompletionQueue& cq, diwarp::Duration wait);
  /// Nothing of what is posted will be reported any more.
  void drop_all(Line& line);

 private:
  void take(const diwarp::WorkCompletion& wc);
  Line& line_of_receive(const Request& request, const diwarp::WorkCompletion& wc);
  void check_status(Line& line, const Request& request, const diwarp::WorkCompletion& wc);
  bool status_allowed(const Line& line, const Request& request, diwarp::WcStatus status) const;
  void check_withdrawn(const Request& request);
  void note_failed(const Request& request);
  void note_written(const Request& request);
  void send_done(Line& line, Request& request, const diwarp::WorkCompletion& wc);
  void read_done(Request& request, const diwarp::WorkCompletion& wc);

  Process& process_;
  Offers& offers_;
  Borrowed& borrowed_;
  Arrivals arrivals_;
};

}  // namespace soak
