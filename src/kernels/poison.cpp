#include "kernels/poison.h"

#include <atomic>
#include <limits>

namespace sb::kernels {
namespace {
std::atomic<bool> poisoned{false};
}

void poison_buffers(bool on) {
  poisoned = on;
}
bool buffers_are_poisoned() {
  return poisoned;
}

at::Tensor fresh(at::IntArrayRef sizes, const at::TensorOptions& options) {
  at::Tensor t = at::empty(sizes, options);
  if (poisoned && t.is_floating_point()) t.fill_(std::numeric_limits<double>::quiet_NaN());
  return t;
}

}  // namespace sb::kernels
