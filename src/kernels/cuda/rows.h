// Rows of a tensor as the fused kernels see them: [tokens, heads, width], strides in elements, a row without gaps.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sb::cuda {

enum class Element { bf16, fp32 };  // of activations and their gradients; parameters, sums and gates are fp32

// Rows on 16-byte steps are read and written fastest, whatever their width.
template <class Void>
struct TokenRows {
  Void* data = nullptr;
  int64_t token = 0;
  int64_t head = 0;  // unused where heads = 1
};
using RowsIn = TokenRows<const void>;
using RowsOut = TokenRows<void>;

// Most rows of partial sums that a backward pass keeps in its scratch: gradients of parameters are summed over the rows
// of a block first, then over blocks in order.
inline constexpr int kMostParts = 1024;

}  // namespace sb::cuda
