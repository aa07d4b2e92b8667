// Base of kinds that draw from a language with gaps, noise and wrong symbols as in a task of `gaps`, and change the
// language on all splits but train.
#pragma once
#include <memory>
#include <string>

#include "base/format.h"
#include "tasks/gap_task.h"
#include "tasks/task_registry.h"

namespace sb {

// `L` is a language made from a `Config`, which has `length`.
template <class L, class Config>
class SplitTask : public Task {
 public:
  // `test`: of all splits but train. `test_length`: length of samples at points of the test axis.
  SplitTask(const Config& train, const Config& test, int test_length, const TaskConfig& gaps)
      : train_(train, gaps), test_(test, gaps), test_length_(test_length) {}

  std::string canonical_text() const override {
    return formatted("train:\n{}test:\n{}test_length = {}\n", train_.task.canonical_text(), test_.task.canonical_text(),
                     test_length_);
  }
  int max_frames(Split split) const override { return of(split).task.max_frames(split); }
  double mean_frames(Split split) const override { return of(split).task.mean_frames(split); }

 protected:
  struct Part {
    Part(const Config& of, const TaskConfig& gaps)
        : config(of), language(std::make_shared<const L>(of)), task(language, gaps) {}
    Config config;
    std::shared_ptr<const L> language;
    GapTask task;  // of naming hidden states; its samples and its filter are used
  };
  const Part& of(Split split) const { return split == Split::train ? train_ : test_; }

  // The task of class `Kind` with a key changed on this split.
  template <class Kind>
  std::shared_ptr<const Task> changed(Split split, int Config::*key, int value) const {
    Config train = train_.config, test = test_.config;
    Config& of_split = split == Split::train ? train : test;  // g++ 12 would write to a copy without this line
    of_split.*key = value;
    train.length = test.length = test_length_;
    return std::make_shared<const Kind>(train, test, test_length_, train_.task.config());
  }

 private:
  Part train_, test_;
  int test_length_;
};

// Makes a SplitTask from its config and the keys test_length and as_task.
template <class Kind, class Config>
std::shared_ptr<const Task> make_split_task(const TaskSetup& setup, const Config& config) {
  const int length = setup.integer("test_length");
  return std::make_shared<const Kind>(config, config, length > 0 ? length : setup.length,
                                      paper_task(setup.integer("as_task")));
}

}  // namespace sb
