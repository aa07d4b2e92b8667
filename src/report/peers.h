// What a train step of the models' published layers was measured to take; shown beside our own, never used in a
// computation.
#pragma once
#include <optional>
#include <string>

namespace sb {

// PyTorch 2.11, Triton 3.6, fla and mamba_ssm on one H200: bfloat16 autocast, TF32, fused Adam, the whole step in one
// CUDA graph; batch 64, 8 layers, 1,601 classes.
struct PeerStep {
  double ms = 0, tokens_per_second = 0;
  double gibibytes = 0;  // most memory at a time
};
std::optional<PeerStep> peer_step(const std::string& model, int width, int time);

// The width of the paper's largest network of this model; 1024 for those it has not.
int paper_width(const std::string& model);

}  // namespace sb
