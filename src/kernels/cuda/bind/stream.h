// Access to libtorch's current CUDA stream and cuBLAS handle.
#pragma once
#include <cuda_runtime_api.h>

struct cublasContext;

namespace sb::cuda::bind {

cudaStream_t current_stream(int device);
// Uses the current stream and libtorch's workspace.
cublasContext* blas_handle();

}  // namespace sb::cuda::bind
