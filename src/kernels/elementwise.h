// Functions of single elements, and glu of rows, whose bytes do not depend on the number of threads. On x86_64,
// libtorch computes the end of each thread's share of a tensor with other instructions, which round differently.
#pragma once
#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace sb {

inline constexpr int64_t kPiece = 1 << 14;  // half of libtorch's least share, and a multiple of every vector's length

// f(x). On a CPU in pieces that libtorch does not divide among threads.
template <class F>
at::Tensor in_pieces(const at::Tensor& x, const F& f) {
  if (!x.device().is_cpu() || x.numel() <= kPiece) return f(x);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : x.flatten().split(kPiece)) parts.push_back(f(part));
  return at::cat(parts).view(x.sizes());
}

inline at::Tensor sigmoid(const at::Tensor& x) {
  return in_pieces(x, [](const at::Tensor& part) { return at::sigmoid(part); });
}
inline at::Tensor softplus(const at::Tensor& x) {
  return in_pieces(x, [](const at::Tensor& part) { return at::softplus(part); });
}
inline at::Tensor elu(const at::Tensor& x) {
  return in_pieces(x, [](const at::Tensor& part) { return at::elu(part); });
}
// Over the last axis
inline at::Tensor glu(const at::Tensor& x) {
  if (!x.device().is_cpu() || x.numel() <= kPiece) return at::glu(x, -1);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() /= 2;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& rows : x.flatten(0, -2).split(std::max<int64_t>(1, kPiece / x.size(-1))))
    parts.push_back(at::glu(rows, -1));
  return at::cat(parts).view(sizes);
}
inline at::Tensor silu(const at::Tensor& x) {
  return in_pieces(x, [](const at::Tensor& part) { return at::silu(part); });
}

}  // namespace sb
