// --kind NAME, --set KEY=VALUE, --at POINT: a task of a kind other than gaps, for commands that show tasks.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/settings.h"
#include "config/data.h"

namespace sb::cli {

class KindSettings {
 public:
  void add_to(Arguments& arguments);
  bool asked() const;  // whether the kind is not gaps
  // Makes the task. Options that only the kind gaps has are errors.
  std::shared_ptr<const Task> task(const GrammarSettings& grammar, const SequenceSettings& sequences,
                                   const TaskSettings& gaps) const;
  const std::string& name() const { return name_; }
  // Whether symbols are bytes of a text, to be shown as characters.
  bool shows_bytes(const GrammarSettings& grammar, const SequenceSettings& sequences) const;
  Json description(const GrammarSettings& grammar, const Task& task) const;

 private:
  void refuse_options_of_gaps(const SequenceSettings& sequences, const TaskSettings& gaps) const;
  RunConfig resolved(const GrammarSettings& grammar, const SequenceSettings& sequences) const;
  std::string name_ = kGapsKind;
  std::vector<std::string> overrides_;
  std::optional<int> at_;
  const Arguments* arguments_ = nullptr;
};

// A sample of any kind, element by element: frames, right answer, and what the oracle or the estimator says. `bytes`:
// symbols are shown as characters.
std::string sample_text(const Task& task, const std::string& kind, bool bytes, Split split, uint64_t index, int from,
                        int elements, const std::string& color);

}  // namespace sb::cli
