// Functions of single elements whose bytes do not depend on the number of threads. On x86_64, libtorch computes the end
// of each thread's share of a tensor with other instructions, which round differently.
#pragma once
#include <ATen/ATen.h>

#include <vector>

namespace sb {

// f(x). On a CPU in pieces that libtorch does not divide among threads.
template <class F>
at::Tensor in_pieces(const at::Tensor& x, const F& f) {
  constexpr int64_t piece = 1 << 14;  // half of libtorch's least share, and a multiple of every vector's length
  if (!x.device().is_cpu() || x.numel() <= piece) return f(x);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : x.flatten().split(piece)) parts.push_back(f(part));
  return at::cat(parts).view(x.sizes());
}

inline at::Tensor sigmoid(const at::Tensor& x) {
  return in_pieces(x, [](const at::Tensor& part) { return at::sigmoid(part); });
}
inline at::Tensor softplus(const at::Tensor& x) {
  return in_pieces(x, [](const at::Tensor& part) { return at::softplus(part); });
}
inline at::Tensor silu(const at::Tensor& x) {
  return in_pieces(x, [](const at::Tensor& part) { return at::silu(part); });
}

}  // namespace sb
