// The samples of another task, of which a test asks for some answers only.
#pragma once
#include "tasks/task.h"

namespace sb::test {

class PartlyAsked : public Task {
 public:
  explicit PartlyAsked(const Task& all) : all_(all) {}
  TaskShape shape() const override { return all_.shape(); }
  std::string canonical_text() const override { return "partly asked\n"; }
  int max_frames(Split split) const override { return all_.max_frames(split); }
  double mean_frames(Split split) const override { return all_.mean_frames(split); }
  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    all_.fill(split, samples, out, pad_to);
  }

 protected:
  const Task& all_;
};

}  // namespace sb::test
