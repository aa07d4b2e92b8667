// Measured training steps of the models' published layers. They are shown next to our own, never used in a computation.
#pragma once
#include <optional>
#include <string>

namespace sb {

// PyTorch 2.11, Triton 3.6, fla and mamba_ssm on one H200: bfloat16 autocast, TF32, fused Adam, the whole step in one
// CUDA graph; batch 64, 8 layers, 1,601 classes.
struct PeerStep {
  double ms = 0, tokens_per_second = 0;
  double gibibytes = 0;  // peak memory
};
std::optional<PeerStep> peer_step(const std::string& model, int width, int time);

}  // namespace sb
