// Adapts a network to the evaluation's Predictor interface. Carries the state between ranges of frames and computes
// logits in small blocks.
#pragma once
#include <optional>

#include "models/network.h"
#include "tasks/evaluate.h"

namespace sb {

class NetworkPredictor final : public Predictor {
 public:
  // Keeps a reference to the network. `reduces`: whether reduce() is supported; default: if the network is on a GPU.
  explicit NetworkPredictor(const Network& network, std::optional<bool> reduces = std::nullopt);
  int answers() const override { return static_cast<int>(network_.config().outputs); }
  void begin(const Batch& batch) override;
  void predict(const Batch& batch, int from, int to, float* probabilities) override;
  std::unique_ptr<Reduction> reduce(const Batch& batch, const Task& task) override;

 private:
  at::Tensor frames_there(const Batch& batch) const;
  void predict_there(const Batch& batch, int from, int to, float* probabilities);

  const Network& network_;
  bool reduces_;
  NetworkState state_;
  at::Tensor hidden_;  // on a GPU: hidden activations from frame hidden_from_ on, computed in advance
  int hidden_from_ = 0;
};

}  // namespace sb
