// Decoder and cross-entropy on CUDA, without torch: logits = h W^T + bias in fp32 for a group of rows at a time, turned
// into their own gradient and multiplied back before the next group. Products through the caller's cuBLAS handle.
//   loss = sum over rows with target >= 0 of (log sum exp logits - logits[target]) / normaliser
#pragma once
#include <cstdint>

#include "kernels/cuda/rows.h"

struct cublasContext;

namespace sb::cuda {

struct DecoderLoss {
  int64_t rows = 0;
  int width = 0, classes = 0;  // classes <= kMostClasses
  // Rows of weight and d_weight in memory, >= classes (0: classes); those after the classes hold zeros and get them. A
  // multiple of 8 lets the products run several times as fast.
  int padded_classes = 0;
  Element element = Element::bf16;
  bool tf32 = false;                           // products of fp32 elements as TF32
  int group = 0;                               // rows whose logits exist together; 0: chosen
  const void *h = nullptr, *weight = nullptr;  // [rows, width], [classes, width] without gaps
  const float* bias = nullptr;
  const int64_t* target = nullptr;     // [rows]; < 0: padding
  const double* normaliser = nullptr;  // on the device
};
inline constexpr int kMostClasses = 8192;

struct DecoderLossGradients {
  void* dh = nullptr;  // of the element; null: no gradients
  float *d_weight = nullptr, *d_bias = nullptr;
};

// *count = number of rows with target >= 0
cudaError_t count_targets(const int64_t* target, int64_t rows, double* count, cudaStream_t stream);

size_t decoder_loss_scratch_bytes(const DecoderLoss& p);
// The same bytes on every run (as far as cuBLAS gives them). *loss on the device.
cudaError_t decoder_loss(const DecoderLoss& p, double* loss, const DecoderLossGradients& d, void* scratch,
                         cublasContext* handle, cudaStream_t stream);

}  // namespace sb::cuda
