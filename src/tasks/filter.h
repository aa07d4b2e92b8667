// The exact filter: forward filtering of the hidden state of a language with gaps, given all frames so far.
#pragma once
#include <memory>

#include "tasks/gap_process.h"
#include "tasks/oracle.h"

namespace sb {

class FilterModel;  // precomputed data of a language, shared by any number of filters
std::shared_ptr<const FilterModel> filter_model(std::shared_ptr<const Language> language);

// Follows one sample frame by frame. The filter knows the language, the maximum string length, the concatenation of
// strings, the number of elements, and the distributions of gaps and wrong symbols. A hypothesis is (state, elements of
// the current string so far, element index, gap frames since the element). The belief is the list of live hypotheses.
// The filter reads frames without noise: exact for noise <= 1, where the largest channel identifies symbol or blank.
class ExactFilter final : public Oracle {
 public:
  ExactFilter(std::shared_ptr<const FilterModel> model, const TaskConfig& task, Split split);
  ExactFilter(std::shared_ptr<const Language> language, const TaskConfig& task, Split split);
  ~ExactFilter() override;
  ExactFilter(ExactFilter&&) noexcept;

  int states() const override;
  int classes() const override;
  bool exact() const override;
  void reset() override;
  void frame(int16_t symbol) override;
  Belief belief(int gap_frames = causal) const override;
  using Oracle::posterior;
  void posterior(std::vector<StateProbability>& out, int gap_frames = causal) const override;
  double probability(int32_t id, int gap_frames) const override;
  void next_classes(double* over_classes, int gap_frames = causal) const override;
  void mean_law(double* over_classes, int gap_frames = causal) const override;
  std::optional<double> log_likelihood() const override;

  size_t live() const;  // hypotheses

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sb
