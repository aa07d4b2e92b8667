#include "kernels/cuda/bind/stream.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAStream.h>

namespace sb::cuda::bind {

cudaStream_t current_stream(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream();
}
cublasContext* blas_handle() {
  return at::cuda::getCurrentCUDABlasHandle();
}

}  // namespace sb::cuda::bind
