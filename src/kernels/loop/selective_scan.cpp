#include <ATen/ATen.h>

#include "kernels/recurrence.h"

namespace sb::loop {

Scan selective_scan(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& A_log, const at::Tensor& B,
                    const at::Tensor& C, const at::Tensor& skip, const at::Tensor& state, const at::Tensor& write,
                    double a_min) {
  const at::Tensor A = -A_log.exp();
  const at::Tensor written = (write.defined() ? write : delta) * x;
  at::Tensor h = state.defined() ? state : at::zeros({x.size(0), x.size(2), A_log.size(1)}, x.options());
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < x.size(1); ++t) {
    at::Tensor decay = (delta.select(1, t).unsqueeze(-1) * A).exp();
    if (a_min > 0) decay = decay.clamp_min(a_min);
    h = decay * h + written.select(1, t).unsqueeze(-1) * B.select(1, t).unsqueeze(1);
    out.push_back(at::matmul(h, C.select(1, t).unsqueeze(-1)).squeeze(-1));
  }
  return {at::stack(out, 1) + skip * x, h};
}

}  // namespace sb::loop
