// A build without CUDA kernels.
#include "base/error.h"
#include "kernels/adam_update.h"
#include "kernels/frame_rows.h"
#include "kernels/operations.h"

namespace sb::cuda {

#define SB_OPERATION(Op, ...)                \
  template <>                                \
  kernels::Kernel<op::Op> kernel<op::Op>() { \
    return {};                               \
  }
#include "kernels/operations.def"
#undef SB_OPERATION

}  // namespace sb::cuda

namespace sb::kernels {
namespace {

Error not_built(const char* where) {
  return bad_input(where, "no CUDA kernels, expected a build with nvcc and a PyTorch with CUDA, got one without");
}

}  // namespace

bool cuda_kernels_are_built() {
  return false;
}
at::Tensor adam_stretches(const std::vector<AdamStretch>&, const at::Device&) {
  throw not_built("adam_update");
}
at::Tensor adam_update(const FlatAdam&, const at::Tensor&, const at::Tensor&) {
  throw not_built("adam_update");
}
at::Tensor frame_rows(const at::Tensor&, int64_t, at::ScalarType, const FrameNoise&) {
  throw not_built("frame_rows");
}

}  // namespace sb::kernels
