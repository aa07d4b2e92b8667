// Samples of a language, with a gap after each element and noise on the frames: the paper's tasks and everything in
// between.
#pragma once
#include <memory>
#include <mutex>

#include "tasks/gap_process.h"
#include "tasks/task.h"

namespace sb {

class FilterModel;

class GapTask final : public Task {
 public:
  GapTask(std::shared_ptr<const Language> language, const TaskConfig& config);
  const Language& language() const { return *language_; }
  const std::shared_ptr<const Language>& shared_language() const { return language_; }
  const TaskConfig& config() const { return config_; }
  const GapProcess& gaps() const { return gaps_; }

  TaskShape shape() const override;
  std::string objective() const override { return to_string(config_.objective); }
  int states() const override { return language_->states(); }
  std::optional<double> topological_entropy() const override { return language_->topological_entropy(); }
  void check_split(Split split) const override { language_->check_split(split); }
  std::string canonical_text() const override;
  int max_frames(Split split) const override;
  double mean_frames(Split split) const override;
  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to = 0) const override;
  // Like fill() above, from samples drawn before: rows first_row .. first_row+count-1 of a block of this split.
  void fill(Split split, const SampleBlock& block, size_t first_row, int count, Batch& out, int pad_to = 0) const;
  void answers(const Batch& batch, int row, int32_t* out) const override;
  std::span<const int32_t> shown() const override;
  bool has_law() const override { return config_.objective == Objective::predict; }
  void law(int32_t state, double* over_answers) const override;
  std::unique_ptr<Oracle> oracle(Split split) const override;
  std::shared_ptr<const Task> at(Split split, int gap) const override;
  std::unique_ptr<NgramSource> ngrams() const override;  // null unless the objective is `state`
  bool hides_symbols() const override { return config_.noise > 1; }

 private:
  void lay_out(Split split, const uint16_t* states, Batch& out, int pad_to) const;

  std::shared_ptr<const Language> language_;
  TaskConfig config_;
  GapProcess gaps_;
  std::vector<int32_t> state_of_;  // [states]: index of the state with this id
  std::vector<int32_t> shown_;     // [states]: class of the state with this id
  mutable std::once_flag filter_made_;
  mutable std::shared_ptr<const FilterModel> filter_;  // shared by all oracles
};

// Lays out rows of states [count][length] with their gaps. The symbols of gap frames come from `wrong` in order; if
// `wrong` is empty, gap frames are blank.
void assemble(const Language& language, const uint16_t* states, int length, const Gaps* gaps, int count, Batch& out,
              int pad_to = 0);
// The same with the number of classes, and class and id of each state.
void assemble(int classes, std::span<const int32_t> symbols, std::span<const int32_t> ids, const uint16_t* states,
              int length, const Gaps* gaps, int count, Batch& out, int pad_to = 0);

}  // namespace sb
