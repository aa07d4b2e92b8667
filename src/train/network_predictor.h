// A trained network behind the evaluation's interface: state carried from stretch to stretch, logits in small blocks.
#pragma once
#include "models/network.h"
#include "train/evaluate.h"

namespace sb {

class NetworkPredictor final : public Predictor {
 public:
  explicit NetworkPredictor(const Network& network, const GateRecorder* gates = nullptr)
      : network_(network), gates_(gates) {}
  int64_t classes() const override { return network_.config().outputs; }
  void begin(const TensorBatch& batch) override;
  void predict(const TensorBatch& batch, int from, int to, float* probabilities) override;

 private:
  const Network& network_;
  const GateRecorder* gates_;
  NetworkState state_;
};

}  // namespace sb
