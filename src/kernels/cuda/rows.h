// Rows of a tensor for the fused kernels: [tokens, heads, width], strides in elements, rows contiguous.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sb::cuda {

enum class Element { bf16, fp32 };  // of activations and their gradients; parameters, sums and gates are fp32

// Access is fastest if rows are aligned to 16 bytes, whatever their width.
template <class Void>
struct TokenRows {
  Void* data = nullptr;
  int64_t token = 0;
  int64_t head = 0;  // unused if heads = 1
};
using RowsIn = TokenRows<const void>;
using RowsOut = TokenRows<void>;

// Maximum rows of partial sums in the scratch memory of a backward pass. Gradients of parameters are first summed over
// the rows of a block, then over blocks in order.
inline constexpr int kMaxParts = 1024;

}  // namespace sb::cuda
