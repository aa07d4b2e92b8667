// What the kernels' callers need of the library's CUDA: the current stream and a cuBLAS handle.
#pragma once
#include <cuda_runtime_api.h>

struct cublasContext;

namespace sb::cuda::bind {

cudaStream_t current_stream(int device);
// Tied to the current stream and to the library's workspace.
cublasContext* blas_handle();

}  // namespace sb::cuda::bind
