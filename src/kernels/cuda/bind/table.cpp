// The kernels of a build with CUDA.
#include "kernels/operations.h"

namespace sb::cuda {

#define SB_OPERATION(Op, name, ...)          \
  template <>                                \
  kernels::Kernel<op::Op> kernel<op::Op>() { \
    return bind::name##_kernel;              \
  }
#include "kernels/operations.def"
#undef SB_OPERATION

}  // namespace sb::cuda

namespace sb::kernels {

bool cuda_kernels_are_built() {
  return true;
}

}  // namespace sb::kernels
