// Which implementation of an operation runs: decided by the tensor, in one function.
#pragma once
#include <ATen/core/Tensor.h>

namespace sb::kernels {

enum class Backend {
  truth,  // plain loops over time in ATen operations; where an operation has none: aten
  aten,   // ATen operations: any device and type
  cpu,    // our loops, float and double
  cuda,   // our CUDA kernels; where an operation has none, or none for this type: aten
};
Backend backend_of(const at::Tensor& x);

// Whether this build has CUDA kernels; without them ATen's operations run on such a device.
bool cuda_kernels_are_built();

// On a GPU, whether products of float32 matrices and the recurrences in float32 may round operands to TF32: one switch
// for ours and for the library's. Off at first. Not for use while other threads compute.
void allow_tf32(bool on);
bool tf32_is_allowed();

// While one of these lives, every operation runs the given back end, whatever its tensors: truth in tests, aten as the
// yardstick of benchmarks. Not for use while other threads compute.
class UseBackend {
 public:
  explicit UseBackend(Backend backend);
  ~UseBackend();
  UseBackend(const UseBackend&) = delete;
  UseBackend& operator=(const UseBackend&) = delete;

 private:
  int before_;
};
// The result of `call` with that back end.
template <class Call>
auto on(Backend backend, const Call& call) {
  const UseBackend use(backend);
  return call();
}
// Whether ATen operations stand in for our kernels now: then memory comes from ATen's allocator as well.
bool aten_is_forced();

}  // namespace sb::kernels
