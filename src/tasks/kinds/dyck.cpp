// Dyck: brackets of several types open and close. The model names the type of the innermost open bracket.
//   shown   (0  (1  )0  )1      types 0 and 1 open as (0, types 2 and 3 as (1; 0 and 2 close as )0, 1 and 3 as )1
//   asked    1   2   1   empty
#include "base/error.h"
#include "base/format.h"
#include "grammar/brackets.h"
#include "tasks/gap_task.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

// Answer 0: no bracket is open. Answer 1 + t: the innermost open bracket has type t.
int answer_of(const BracketLanguage& language, int32_t state) {
  return language.top(state) + 1;
}

// The exact filter's posterior over stacks, summed over stacks with the same top.
class TopOracle final : public Oracle {
 public:
  TopOracle(std::shared_ptr<const BracketLanguage> language, std::unique_ptr<Oracle> filter, int answers)
      : language_(std::move(language)), filter_(std::move(filter)), answers_(static_cast<size_t>(answers)) {}
  int states() const override { return static_cast<int>(answers_); }
  int classes() const override { return filter_->classes(); }
  bool exact() const override { return filter_->exact(); }
  void reset() override { filter_->reset(); }
  void frame(int16_t symbol) override { filter_->frame(symbol); }
  std::optional<double> log_likelihood() const override { return filter_->log_likelihood(); }
  using Oracle::posterior;
  void posterior(std::vector<StateProbability>& out, int gap_frames) const override {
    filter_->posterior(out, gap_frames);
    std::vector<double> sums(answers_);
    for (const StateProbability& s : out) sums[static_cast<size_t>(answer_of(*language_, s.id))] += s.probability;
    out.clear();
    for (size_t answer = 0; answer < answers_; ++answer)
      if (sums[answer] > 0) out.push_back({static_cast<int32_t>(answer), sums[answer]});
  }

 private:
  std::shared_ptr<const BracketLanguage> language_;
  std::unique_ptr<Oracle> filter_;
  size_t answers_;
};

class Dyck final : public Task {
 public:
  // `test`: brackets of all splits but train. `test_length`: length of samples at points of the test axis.
  Dyck(const BracketConfig& train, const BracketConfig& test, int test_length, const TaskConfig& gaps)
      : train_(train, gaps), test_(test, gaps), test_length_(test_length), gaps_(gaps) {}

  TaskShape shape() const override {
    TaskShape shape = train_.task.shape();
    shape.answers = train_.brackets.types + 1;
    return shape;
  }
  std::string canonical_text() const override {
    return formatted("dyck\ntrain:\n{}test:\n{}test_length = {}\n", train_.task.canonical_text(),
                     test_.task.canonical_text(), test_length_);
  }
  int max_frames(Split split) const override { return of(split).task.max_frames(split); }
  double mean_frames(Split split) const override { return of(split).task.mean_frames(split); }

  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    const Part& part = of(split);
    part.task.fill(split, samples, out, pad_to);
    for (int32_t& state : out.state) state = answer_of(*part.language, state);
    for (int32_t& target : out.target) target = target < 0 ? -1 : answer_of(*part.language, target);
  }
  std::unique_ptr<Oracle> oracle(Split split) const override {
    const Part& part = of(split);
    return std::make_unique<TopOracle>(part.language, part.task.oracle(split), part.brackets.types + 1);
  }
  std::shared_ptr<const Task> at(Split split, int depth) const override {
    BracketConfig train = train_.brackets, test = test_.brackets;
    (split == Split::train ? train : test).depth = depth;
    train.length = test.length = test_length_;
    return std::make_shared<const Dyck>(train, test, test_length_, gaps_);
  }

 private:
  // The task of naming stacks. Its samples and its filter are used here.
  struct Part {
    Part(const BracketConfig& config, const TaskConfig& gaps)
        : brackets(config), language(std::make_shared<const BracketLanguage>(config)), task(language, gaps) {}
    BracketConfig brackets;
    std::shared_ptr<const BracketLanguage> language;
    GapTask task;
  };
  const Part& of(Split split) const { return split == Split::train ? train_ : test_; }

  Part train_, test_;
  int test_length_;
  TaskConfig gaps_;
};

std::shared_ptr<const Task> make_dyck(const TaskSetup& setup, const Poll&) {
  const auto key = [&](const char* name) { return static_cast<int>(setup.whole(name)); };
  const BracketConfig brackets{.seed = setup.seed,
                               .types = key("types"),
                               .share = key("share"),
                               .children = key("children"),
                               .depth = key("depth"),
                               .length = setup.length};
  for (const char* name : {"share", "children"}) setup.expect_at_most("types", name);
  const int test_length = key("test_length") > 0 ? key("test_length") : setup.length;
  return std::make_shared<const Dyck>(brackets, brackets, test_length, paper_task(key("as_task")));
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
               {"as_task", int64_t{0}, 0, 3, "gaps, noise and wrong symbols as in this task of gaps; 0: none"}},
      .length = 200,
      .length_meaning = "brackets per sample",
      .axis = TestAxis{"depth", "depths", 1, 1000, "maximum numbers of open brackets, tested without retraining",
                       "maximum number of open brackets in the test"},
      .make = make_dyck,
      .symbol_name = [](int symbol) { return formatted("{}{}", symbol % 2 == 0 ? '(' : ')', symbol / 2); },
      .answer_name = [](int answer) { return answer == 0 ? std::string("empty") : std::to_string(answer - 1); }};
}

}  // namespace sb
