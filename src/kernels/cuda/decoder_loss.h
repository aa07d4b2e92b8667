// Decoder and cross-entropy on CUDA, without torch. For one group of rows at a time, computes logits = h W^T + bias in
// fp32, replaces them by their gradient, and computes the gradients of h, W and bias. Uses the caller's cuBLAS handle.
//   loss = sum over rows with target >= 0 of (log sum exp logits - logits[target]) / normaliser
#pragma once
#include <cstdint>

#include "kernels/cuda/rows.h"

struct cublasContext;

namespace sb::cuda {

struct DecoderLoss {
  int64_t rows = 0;
  int width = 0, classes = 0;  // classes <= kMaxClasses
  // Rows of weight and d_weight in memory, >= classes (0: classes). Rows after the classes must be zero in weight, and
  // are set to zero in d_weight. Products are several times as fast with a multiple of 8.
  int padded_classes = 0;
  Element element = Element::bf16;
  bool tf32 = false;                           // use TF32 for products of fp32 elements
  int group = 0;                               // rows per group; 0: chosen automatically
  const void *h = nullptr, *weight = nullptr;  // [rows, width], [classes, width], contiguous
  const float* bias = nullptr;
  const int64_t* target = nullptr;     // [rows]; < 0: padding
  const double* normaliser = nullptr;  // on the device
};
inline constexpr int kMaxClasses = 8192;

struct DecoderLossGradients {
  void* dh = nullptr;  // of type `element`; null: no gradients
  float *d_weight = nullptr, *d_bias = nullptr;
};

// *count = number of rows with target >= 0
cudaError_t count_targets(const int64_t* target, int64_t rows, double* count, cudaStream_t stream);

size_t decoder_loss_scratch_bytes(const DecoderLoss& p);
// Deterministic as far as cuBLAS is. `loss` is on the device.
cudaError_t decoder_loss(const DecoderLoss& p, double* loss, const DecoderLossGradients& d, void* scratch,
                         cublasContext* handle, cudaStream_t stream);

}  // namespace sb::cuda
