// SPDX-License-Identifier: Apache-2.0
#include "choice_tree.h"

#include <charconv>
#include <stdexcept>

namespace diwarp::explore {

namespace {

constexpr uint32_t kMostScripted = 1u << 20;

/// Takes a number from the front of `text`, and `end` after it where something follows.
uint32_t take_number(std::string_view& text, char end) {
  uint32_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  const bool ended = text.empty() ? end == ',' : text.front() == end;
  if (error != std::errc() || !ended || value >= kMostScripted)
    throw std::invalid_argument("A script is written as QUESTION:ANSWER,QUESTION:ANSWER or -");
  if (!text.empty()) text.remove_prefix(1);
  return value;
}

}  // namespace

ChoiceTree ChoiceTree::replay(std::string_view script) {
  ChoiceTree tree;
  tree.replays_ = true;
  if (script == "-") script = {};
  while (!script.empty()) {
    const uint32_t question = take_number(script, ':');
    const uint32_t answer = take_number(script, ',');
    if (tree.scripted_.size() <= question) tree.scripted_.resize(question + 1);
    tree.scripted_[question] = answer;
  }
  return tree;
}

bool ChoiceTree::begin_run() {
  const bool first = runs_ == 0;
  if (asked_ < questions_.size())
    throw std::logic_error("A run ended before it came to where it was to differ");
  if (!first && !advance()) return false;
  asked_ = 0;
  ++runs_;
  return true;
}

/// To the next answer of the last question that has one.
bool ChoiceTree::advance() {
  while (!questions_.empty()) {
    Question& last = questions_.back();
    if (last.answer + 1 < last.open) {
      if (last.answer++ == 0) ++faults_;
      return true;
    }
    if (last.answer != 0) --faults_;
    questions_.pop_back();
  }
  return false;
}

uint32_t ChoiceTree::choose(uint32_t alternatives) {
  if (asked_ < questions_.size()) return repeat(alternatives);
  if (questions_.size() >= bounds_.questions) return 0;
  const bool open = !replays_ && faults_ < bounds_.faults;
  Question fresh{.alternatives = alternatives, .open = open ? alternatives : 1, .answer = 0};
  if (replays_ && asked_ < scripted_.size()) fresh.answer = scripted_[asked_];
  if (fresh.answer >= alternatives)
    throw std::invalid_argument("The script does not fit: question " + std::to_string(asked_) +
                                " has " + std::to_string(alternatives) + " answers");
  if (fresh.answer != 0) ++faults_;
  questions_.push_back(fresh);
  ++asked_;
  return fresh.answer;
}

uint32_t ChoiceTree::repeat(uint32_t alternatives) {
  const Question& question = questions_[asked_++];
  if (question.alternatives != alternatives)
    throw std::logic_error("Question " + std::to_string(asked_ - 1) +
                           " differs from the run before: the program is not deterministic");
  return question.answer;
}

std::string ChoiceTree::script() const {
  std::string text;
  for (size_t i = 0; i < asked_; ++i) {
    if (questions_[i].answer == 0) continue;
    if (!text.empty()) text += ',';
    text += std::to_string(i) + ':' + std::to_string(questions_[i].answer);
  }
  return text.empty() ? "-" : text;
}

}  // namespace diwarp::explore
