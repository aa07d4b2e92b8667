// Base of oracles whose answers follow from the beliefs of another oracle.
#pragma once
#include <memory>
#include <vector>

#include "tasks/oracle.h"

namespace sb {

// Forwards frames and likelihoods. A derived class has states() and posterior().
class WrappedOracle : public Oracle {
 public:
  int classes() const override { return inner_->classes(); }
  bool exact() const override { return inner_->exact(); }
  void reset() override { inner_->reset(); }
  void frame(int16_t symbol) override { inner_->frame(symbol); }
  void dense_frame(const float* channels) override { inner_->dense_frame(channels); }
  std::optional<double> log_likelihood() const override { return inner_->log_likelihood(); }

 protected:
  explicit WrappedOracle(std::unique_ptr<Oracle> inner) : inner_(std::move(inner)) {}
  const Oracle& inner() const { return *inner_; }
  // Lists the probabilities above 0, as posterior() does.
  static void list(const std::vector<double>& probabilities, std::vector<StateProbability>& out) {
    out.clear();
    for (size_t id = 0; id < probabilities.size(); ++id)
      if (probabilities[id] > 0) out.push_back({static_cast<int32_t>(id), probabilities[id]});
  }

 private:
  std::unique_ptr<Oracle> inner_;
};

}  // namespace sb
