#include "kernels/backend.h"

#include <ATen/Context.h>

#include <atomic>

namespace sb::kernels {
namespace {

constexpr int kByTensor = -1;
std::atomic<int> forced{kByTensor};
std::atomic<bool> tf32{false};

}  // namespace

Backend backend_of(const at::Tensor& x) {
  if (const int use = forced.load(std::memory_order_relaxed); use != kByTensor) return static_cast<Backend>(use);
  if (x.device().is_cuda()) return Backend::cuda;
  const bool has_loops = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  return x.device().is_cpu() && has_loops ? Backend::cpu : Backend::aten;
}

UseBackend::UseBackend(Backend backend) : before_(forced.exchange(static_cast<int>(backend))) {}
UseBackend::~UseBackend() {
  forced.store(before_);
}

void allow_tf32(bool on) {
  tf32 = on;
  at::globalContext().setAllowTF32CuBLAS(on);
  at::globalContext().setAllowTF32CuDNN(on);
}
bool tf32_is_allowed() {
  return tf32.load(std::memory_order_relaxed);
}

bool aten_is_forced() {
  return forced.load(std::memory_order_relaxed) == static_cast<int>(Backend::aten);
}

}  // namespace sb::kernels
