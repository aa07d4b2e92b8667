// A trained network behind the evaluation's interface: state carried from stretch to stretch, logits in small blocks.
#pragma once
#include "models/network.h"
#include "tasks/evaluate.h"

namespace sb {

class NetworkPredictor final : public Predictor {
 public:
  explicit NetworkPredictor(const Network& network, const GateRecorder* gates = nullptr)
      : network_(network), gates_(gates) {}
  int answers() const override { return static_cast<int>(network_.config().outputs); }
  void begin(const Batch& batch) override;
  void predict(const Batch& batch, int from, int to, float* probabilities) override;

 private:
  const Network& network_;
  const GateRecorder* gates_;
  NetworkState state_;
};

}  // namespace sb
