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
  void predict_there(const Batch& batch, int from, int to, float* probabilities);

  const Network& network_;
  const GateRecorder* gates_;
  NetworkState state_;
  at::Tensor hidden_;  // on a GPU: of frames hidden_from_ on, some of them still to be asked for
  int hidden_from_ = 0;
};

}  // namespace sb
