// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace diwarp::tools {

/// The error that ends a tool with status 1. The text is the message that the user reads.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The peer ended, or said why it stopped: there is no one left to tell.
class PeerGone : public Failure {
 public:
  using Failure::Failure;
};

/// The peer said why it stopped. Where several peers are in a run, it may have stopped because
/// another one, or this end, did.
class PeerStopped : public PeerGone {
 public:
  using PeerGone::PeerGone;
};

/// The RC connection broke. Often it is the first sign that the peer's process died, so the
/// code that catches it asks the control channel before blaming the connection.
class LinkDown : public Failure {
 public:
  using Failure::Failure;
};

/// The user asked to stop (SIGINT, SIGTERM).
class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}
  int signal() const { return signal_; }
  const char* what() const noexcept override { return "Interrupted by the user."; }

 private:
  int signal_;
};

/// What a user reads of an exception. The library's Error ends with what its code means in general,
/// which is left out where a message about the case stands before it; a reason that the system
/// gives stays.
std::string sentence_of(const std::exception& error);

}  // namespace diwarp::tools
