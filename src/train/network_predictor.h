// A trained network behind the evaluation's interface: state carried from stretch to stretch, logits in small blocks.
#pragma once
#include <compare>
#include <map>
#include <optional>

#include "models/network.h"
#include "tasks/evaluate.h"

namespace sb {

class NetworkPredictor final : public Predictor {
 public:
  // `reduces`: what reduce() does; left out, where the network lives on a GPU.
  explicit NetworkPredictor(const Network& network, std::optional<bool> reduces = std::nullopt);
  int answers() const override { return static_cast<int>(network_.config().outputs); }
  void begin(const Batch& batch) override;
  void predict(const Batch& batch, int from, int to, float* probabilities) override;
  std::unique_ptr<Reduction> reduce(const Batch& batch, const Task& task) override;

 private:
  // What a forward pass on a GPU depends on beside tensors.
  struct Shape {
    int rows = 0, frames = 0;
    Split split = Split::valid;
    double noise = 0;
    uint64_t seed = 0;
    auto operator<=>(const Shape&) const = default;
  };
  // Logits of batches of one shape, made by one graph of operations. At fixed addresses:
  struct Recorded {
    at::Tensor symbol, samples, logits;
    std::function<void()> replay;
  };
  static std::pair<at::Tensor, at::Tensor> pinned_symbols(const Batch& batch);
  at::Tensor frames_there(const Batch& batch) const;
  at::Tensor dense_there(const Batch& batch, const at::Tensor& symbol, const at::Tensor& samples) const;
  at::Tensor recorded_logits(const Batch& batch);  // undefined: not to be had so
  void predict_there(const Batch& batch, int from, int to, float* probabilities);

  const Network& network_;
  bool reduces_;
  NetworkState state_;
  at::Tensor hidden_;  // on a GPU: of frames hidden_from_ on, some of them still to be asked for
  int hidden_from_ = 0;
  std::map<Shape, Recorded> recorded_;
};

}  // namespace sb
