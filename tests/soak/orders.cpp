// SPDX-License-Identifier: Apache-2.0
#include "soak/orders.h"

#include <fcntl.h>
#include <unistd.h>

#include <set>
#include <sstream>

namespace soak {

Orders::Orders(Process& process, Offers& offers, Borrowed& borrowed)
    : process_(process), offers_(offers), borrowed_(borrowed) {
  ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
}

void Orders::read_input() {
  char text[4096];
  ssize_t got = 0;
  while ((got = ::read(STDIN_FILENO, text, sizeof text)) > 0)
    input_.append(text, static_cast<size_t>(got));
  if (got == 0) done_ = true;  // the orchestrator is gone
  size_t begin = 0;
  for (size_t end; (end = input_.find('\n', begin)) != std::string::npos; begin = end + 1)
    obey(input_.substr(begin, end - begin));
  input_.erase(0, begin);
}

void Orders::obey(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  uint32_t index = 0, life = 0;
  words >> verb;
  if (verb == "end") {
    process_.ending = true;
    return;
  }
  if (verb == "close") {
    done_ = true;
    return;
  }
  words >> index;
  if (index >= kMostPeers) return;
  if (verb == "paused" || verb == "running") {
    process_.remotes[index].paused = verb == "paused";
  } else if (verb == "gone") {
    forget_peer(index);
  } else if (verb == "peer") {
    std::array<std::string, 3> texts;
    words >> life >> texts[0] >> texts[1] >> texts[2];
    std::array<diwarp::Address, 3> addresses;
    for (size_t i = 0; i < 3; ++i) addresses[i] = diwarp::Address::parse(texts[i]);
    learn_peer(index, life, addresses);
  } else if (verb == "from") {
    words >> life;
    std::string text;
    std::getline(words >> std::ws, text);
    if (process_.remotes[index].life == life) hear(index, text);
  }
}

void Orders::learn_peer(uint32_t index, uint32_t life, std::array<diwarp::Address, 3> addresses) {
  Remote& remote = process_.remotes[index];
  if (remote.life != life) {
    forget_peer(index);
    remote.life = life;
  }
  remote.addresses = addresses;
}

void Orders::forget_peer(uint32_t index) {
  process_.remotes[index] = Remote{};
  for (Offer& offer : process_.offers) {
    if (offer.remote == index) offer.until = 0, offer.asked_back = true;
  }
}

void Orders::hear(uint32_t index, const std::string& text) {
  std::istringstream words(text);
  std::string verb;
  uint64_t number = 0;
  words >> verb;
  if (verb == "offer") return borrowed_.take(index, words);
  words >> number;
  if (verb == "withdraw") {
    for (Lent& lent : process_.remotes[index].lent) {
      if (lent.id == number) lent.asked_back = true;
    }
    borrowed_.give_back(index, number);
  } else if (verb == "released") {
    Offer* offer = offers_.find(number);
    if (offer != nullptr) offer->until = 0;
  } else if (verb == "gap") {
    hear_gap(index, number);
  } else if (verb == "partial") {
    hear_partial(index, number);
  }
}

/// RD: the peer delivered a Send after this one, which it did not deliver.
void Orders::hear_gap(uint32_t index, uint64_t number) {
  bool posted = false;
  for (Request& request : process_.requests.places()) {
    if (request.id == 0 || request.line != 1 || request.remote != index ||
        request.operation != Operation::send || request.number != number)
      continue;
    request.passed_over = posted = true;
  }
  const std::set<uint64_t>& failed = process_.remotes[index].failed;
  const bool forgotten = !failed.empty() && number < *failed.begin();
  if (posted || forgotten || failed.contains(number)) return;
  process_.ledger.finding("lost", "RD: Send " + std::to_string(number) + " to process " +
                                      std::to_string(index) +
                                      " was reported as delivered, and was not");
}

/// RD: the peer was told of a part of a Write-Record.
void Orders::hear_partial(uint32_t index, uint64_t offer) {
  for (Request& request : process_.requests.places()) {
    if (request.id != 0 && request.line == 1 && request.remote == index &&
        request.operation == Operation::write_record && request.offer == offer)
      request.passed_over = true;
  }
  if (process_.remotes[index].written.contains(offer))
    process_.ledger.finding("lost", "RD: a Write-Record to process " + std::to_string(index) +
                                        " was reported as delivered, and came in part");
}

}  // namespace soak
