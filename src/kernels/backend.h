// Selects the implementation of an operation by the device and type of its first tensor.
#pragma once
#include <ATen/core/Tensor.h>

namespace sb::kernels {

enum class Backend {
  naive,  // reference: plain loops over time in ATen operations; aten if the operation has none
  aten,   // ATen operations, for any device and type
  cpu,    // our CPU kernels, for float and double
  cuda,   // our CUDA kernels; aten if the operation has none for these tensors
};
Backend backend_of(const at::Tensor& x);

// Whether this build has CUDA kernels. Without them, CUDA tensors use ATen operations.
bool cuda_kernels_are_built();

// Whether float32 matrix products and recurrences on a GPU may round their operands to TF32. Applies to our kernels and
// to libtorch's. Initially off. Do not call while other threads compute.
void allow_tf32(bool on);
bool tf32_is_allowed();

// RAII guard: forces one backend for every operation in all threads, e.g. naive in tests and aten as the baseline of
// benchmarks. Do not use while other threads compute.
class UseBackend {
 public:
  explicit UseBackend(Backend backend);
  ~UseBackend();
  UseBackend(const UseBackend&) = delete;
  UseBackend& operator=(const UseBackend&) = delete;

 private:
  int before_;
};
// Returns call() with this backend forced.
template <class Call>
auto on(Backend backend, const Call& call) {
  const UseBackend use(backend);
  return call();
}
// Whether Backend::aten is forced; memory then comes from ATen's allocator, too.
bool aten_is_forced();

}  // namespace sb::kernels
