// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "choices.h"

namespace diwarp::explore {

/// Enumerates, depth first, all runs of a program whose only freedom is choose(). Nothing of a run
/// is kept but its choices: each run starts from the beginning and repeats the choices of the one
/// before up to the point where it differs.
///
///   ChoiceTree tree({.faults = 2});
///   while (tree.begin_run()) run_the_program(tree);
///
/// The program must ask the same questions after the same answers; a run that does not throws
/// std::logic_error.
class ChoiceTree final : public Choices {
 public:
  struct Bounds {
    /// Choices other than 0 in one run.
    uint32_t faults = UINT32_MAX;
    /// Questions of one run that are explored; later ones are answered with 0.
    uint32_t questions = UINT32_MAX;
  };

  /// Without bounds.
  ChoiceTree() = default;
  explicit ChoiceTree(const Bounds& bounds) : bounds_(bounds) {}
  /// A tree of a single run, whose choices are those of `script` (as script() returns it); 0 to all
  /// other questions. Throws std::invalid_argument where the text is no script.
  static ChoiceTree replay(std::string_view script);

  /// Starts the first run, or the next one. False where all have been made.
  bool begin_run();
  /// All answers but 0 count as faults.
  uint32_t choose(uint32_t alternatives) override;

  /// Faults of this run so far.
  uint32_t faults() const { return faults_; }
  /// Runs begun.
  uint64_t runs() const { return runs_; }
  /// The faults of this run: "QUESTION:ANSWER,...", questions counted from 0; "-" where it has
  /// none.
  std::string script() const;

 private:
  struct Question {
    uint32_t alternatives;
    uint32_t open;  // answers to be tried
    uint32_t answer;
  };

  uint32_t repeat(uint32_t alternatives);
  bool advance();

  Bounds bounds_;
  std::vector<Question> questions_;  // of the run before up to where this one differs, then its own
  std::vector<uint32_t> scripted_;   // answers by question, of a replay
  bool replays_ = false;
  size_t asked_ = 0;
  uint32_t faults_ = 0;
  uint64_t runs_ = 0;
};

}  // namespace diwarp::explore
