// Dyck: brackets of several types open and close. The model names the type of the innermost open bracket.
//   shown   (0  (1  )0  )1      types 0 and 1 open as (0, types 2 and 3 as (1; 0 and 2 close as )0, 1 and 3 as )1
//   asked    1   2   1   empty
#include "base/error.h"
#include "base/format.h"
#include "grammar/brackets.h"
#include "tasks/split_task.h"
#include "tasks/wrapped_oracle.h"

namespace sb {
namespace {

// Answer 0: no bracket is open. Answer 1 + t: the innermost open bracket has type t.
int answer_of(const BracketLanguage& language, int32_t state) {
  return language.top(state) + 1;
}

// The exact filter's posterior over stacks, summed over stacks with the same top.
class TopOracle final : public WrappedOracle {
 public:
  TopOracle(std::shared_ptr<const BracketLanguage> language, std::unique_ptr<Oracle> filter, int answers)
      : WrappedOracle(std::move(filter)), language_(std::move(language)), answers_(answers) {}
  int states() const override { return answers_; }
  using Oracle::posterior;
  void posterior(std::vector<StateProbability>& out, int gap_frames) const override {
    inner().posterior(out, gap_frames);
    std::vector<double> sums(static_cast<size_t>(answers_));
    for (const StateProbability& s : out) sums[static_cast<size_t>(answer_of(*language_, s.id))] += s.probability;
    list(sums, out);
  }

 private:
  std::shared_ptr<const BracketLanguage> language_;
  int answers_;
};

class Dyck final : public SplitTask<BracketLanguage, BracketConfig> {
 public:
  using SplitTask::SplitTask;

  TaskShape shape() const override {
    TaskShape shape = of(Split::train).task.shape();
    shape.answers = of(Split::train).config.types + 1;
    return shape;
  }
  std::string canonical_text() const override { return "dyck\n" + SplitTask::canonical_text(); }

  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    const Part& part = of(split);
    part.task.fill(split, samples, out, pad_to);
    for (int32_t& state : out.state) state = answer_of(*part.language, state);
    for (int32_t& target : out.target) target = target < 0 ? -1 : answer_of(*part.language, target);
  }
  std::unique_ptr<Oracle> oracle(Split split) const override {
    const Part& part = of(split);
    return std::make_unique<TopOracle>(part.language, part.task.oracle(split), part.config.types + 1);
  }
  std::shared_ptr<const Task> at(Split split, int depth) const override {
    return changed<Dyck>(split, &BracketConfig::depth, depth);
  }
};

std::shared_ptr<const Task> make_dyck(const TaskSetup& setup, const Poll&) {
  const BracketConfig brackets{.seed = setup.seed,
                               .types = setup.integer("types"),
                               .share = setup.integer("share"),
                               .children = setup.integer("children"),
                               .depth = setup.integer("depth"),
                               .length = setup.length};
  for (const char* name : {"share", "children"}) setup.expect_at_most("types", name);
  return make_split_task<Dyck>(setup, brackets);
}

}  // namespace

TaskRow dyck_row() {
  return {
      .name = "dyck",
      .about = {"Dyck",
                "Brackets of several types open and close. Several types look alike, so the model has to infer a type "
                "from the brackets around and inside it. At every frame the model names the type of the innermost open "
                "bracket."},
      .keys = {{"types", int64_t{4}, 1, 1000, "types of brackets"},
               {"share", int64_t{2}, 1, 1000, "types per opening symbol; 1: every symbol shows its type"},
               {"children", int64_t{2}, 1, 1000, "types that may open directly inside a type, drawn for each type"},
               {"depth", int64_t{4}, 1, 1000, "maximum number of open brackets"},
               {"test_length", int64_t{0}, 0, 100000, "brackets per sample at the points of eval.depths; 0: length"},
               as_task_key()},
      .length = 200,
      .length_meaning = "brackets per sample",
      .axis = TestAxis{"depth", "depths", 1, 1000, "maximum numbers of open brackets, tested without retraining",
                       "maximum number of open brackets in the test"},
      .make = make_dyck,
      .symbol_name = [](int symbol) { return formatted("{}{}", symbol % 2 == 0 ? '(' : ')', symbol / 2); },
      .answer_name = [](int answer) { return answer == 0 ? std::string("empty") : std::to_string(answer - 1); },
      .has_grammars = true};
}

}  // namespace sb
