#include "kernels/cuda/tensor_copy.cuh"

#include <algorithm>

namespace sb::cuda {
namespace {

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// The driver's function, looked up at run time, so that the driver library need not be linked
Encode encoder() {
  static const Encode found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
    return status == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(function)
                                                                          : nullptr;
  }();
  return found;
}

}  // namespace

cudaError_t tensor_map(CUtensorMap& map, const void* data, const TensorShape& s, int box_columns, int box_second,
                       int box_third, bool wide_rows) {
  if (!encoder()) return cudaErrorNotSupported;
  const cuuint64_t sizes[4] = {static_cast<cuuint64_t>(s.columns), static_cast<cuuint64_t>(s.second),
                               static_cast<cuuint64_t>(s.third), static_cast<cuuint64_t>(s.fourth)};
  const auto bytes = [](int64_t stride, int64_t size) {  // an axis of one place may have any
    return static_cast<cuuint64_t>(size > 1 ? stride * 2 : std::max<int64_t>(stride * 2, 16));
  };
  const cuuint64_t strides[3] = {bytes(s.second_stride, s.second), bytes(s.third_stride, s.third),
                                 bytes(s.fourth_stride, s.fourth)};
  const cuuint32_t box[4] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_second),
                             static_cast<cuuint32_t>(box_third), 1};
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  const CUresult status =
      encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(data), sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, wide_rows ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return status == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace sb::cuda
