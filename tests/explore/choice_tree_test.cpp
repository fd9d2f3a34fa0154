// SPDX-License-Identifier: Apache-2.0
#include "choice_tree.h"

#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.h"

using diwarp::explore::ChoiceTree;

namespace {

using Answers = std::vector<uint32_t>;

/// All runs of a program that asks for `next(answers so far)` alternatives until that is 0.
std::vector<Answers> all_runs(ChoiceTree tree,
                              const std::function<uint32_t(const Answers&)>& next) {
  std::vector<Answers> runs;
  while (tree.begin_run()) {
    Answers answers;
    while (const uint32_t alternatives = next(answers))
      answers.push_back(tree.choose(alternatives));
    runs.push_back(answers);
  }
  return runs;
}

uint32_t three_binary_questions(const Answers& answers) { return answers.size() < 3 ? 2 : 0; }

/// A first answer of 1 ends the run, 2 leads to one question more, of four answers.
uint32_t uneven(const Answers& answers) {
  if (answers.empty()) return 3;
  if (answers.front() == 1) return 0;
  return answers.size() <= answers.front() ? 4 : 0;
}

size_t faults_of(const Answers& answers) {
  size_t faults = 0;
  for (const uint32_t answer : answers) faults += answer != 0;
  return faults;
}

}  // namespace

TEST_CASE("choice tree: every run is made, once") {
  const auto runs = all_runs(ChoiceTree(), three_binary_questions);
  CHECK(runs.size() == 8);
  CHECK(std::set(runs.begin(), runs.end()).size() == 8);
  CHECK(runs.front() == Answers{0, 0, 0});
  CHECK(runs.back() == Answers{1, 1, 1});
}

TEST_CASE("choice tree: questions may follow from answers") {
  const auto runs = all_runs(ChoiceTree(), uneven);
  // 0; 1; and 2 with two questions of four answers each.
  CHECK(runs.size() == 1 + 1 + 16);
  CHECK(std::set(runs.begin(), runs.end()).size() == runs.size());
}

TEST_CASE("choice tree: a program that asks nothing runs once") {
  CHECK(all_runs(ChoiceTree(), [](const Answers&) { return 0; }).size() == 1);
}

TEST_CASE("choice tree: no run has more faults than allowed, and none of the others is missing") {
  const auto ten = [](const Answers& answers) { return answers.size() < 10 ? 3u : 0u; };
  const size_t expected[] = {1, 1 + 20, 1 + 20 + 45 * 4, 1 + 20 + 45 * 4 + 120 * 8};
  for (uint32_t faults = 0; faults < 4; ++faults) {
    const auto runs = all_runs(ChoiceTree({.faults = faults}), ten);
    CHECK(runs.size() == expected[faults]);
    CHECK(std::set(runs.begin(), runs.end()).size() == runs.size());
    for (const Answers& run : runs) CHECK(faults_of(run) <= faults);
  }
}

TEST_CASE("choice tree: questions beyond the bound are answered with 0") {
  const auto runs = all_runs(ChoiceTree({.questions = 2}), three_binary_questions);
  CHECK(runs.size() == 4);
  for (const Answers& run : runs) CHECK(run[2] == 0);
}

TEST_CASE("choice tree: a script repeats a run") {
  ChoiceTree tree;
  while (tree.begin_run()) {
    Answers answers;
    while (const uint32_t alternatives = uneven(answers))
      answers.push_back(tree.choose(alternatives));
    ChoiceTree again = ChoiceTree::replay(tree.script());
    REQUIRE(again.begin_run());
    for (size_t i = 0; i < answers.size(); ++i) CHECK(again.choose(i == 0 ? 3 : 4) == answers[i]);
    CHECK(again.script() == tree.script());
    CHECK(again.faults() == faults_of(answers));
    CHECK_FALSE(again.begin_run());
  }
}

TEST_CASE("choice tree: text that is no script, or not one of this program, is refused") {
  for (const char* script : {"x", "1", "1:", ":1", "1:2;3:4", "99999999:1", "0:-1"}) {
    INFO(script);
    CHECK_THROWS_AS(ChoiceTree::replay(script), std::invalid_argument);
  }
  ChoiceTree tree = ChoiceTree::replay("0:5");
  REQUIRE(tree.begin_run());
  CHECK_THROWS_AS(tree.choose(5), std::invalid_argument);
}

TEST_CASE("choice tree: a program that is not deterministic is noticed") {
  ChoiceTree tree;
  REQUIRE(tree.begin_run());
  tree.choose(2);
  tree.choose(2);
  REQUIRE(tree.begin_run());
  CHECK_THROWS_AS(tree.choose(3), std::logic_error);

  ChoiceTree shorter;
  REQUIRE(shorter.begin_run());
  shorter.choose(2);
  shorter.choose(2);
  REQUIRE(shorter.begin_run());
  CHECK_THROWS_AS(shorter.begin_run(), std::logic_error);
}
