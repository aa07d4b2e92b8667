#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

constexpr int kSumColumns = 32, kSumRows = 32;

__global__ void __launch_bounds__(kSumColumns* kSumRows)
    add_parts(const float* parts, int count, int width, float* first, int split, float* second) {
  __shared__ float shared[kSumRows][kSumColumns];
  const int column = blockIdx.x * kSumColumns + threadIdx.x;
  float sum = 0;
  if (column < width) {
#pragma unroll 4
    for (int p = threadIdx.y; p < count; p += kSumRows) sum += parts[static_cast<int64_t>(p) * width + column];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  for (int i = 1; i < kSumRows; ++i) sum += shared[i][threadIdx.x];
  float* const to = column < split ? first : second;
  if (to) to[column < split ? column : column - split] = sum;
}

}  // namespace

cudaError_t sum_parts(const float* parts, int count, int width, float* first, int split, float* second,
                      cudaStream_t stream) {
  add_parts<<<(width + kSumColumns - 1) / kSumColumns, dim3(kSumColumns, kSumRows), 0, stream>>>(parts, count, width,
                                                                                                 first, split, second);
  return cudaGetLastError();
}

}  // namespace sb::cuda
