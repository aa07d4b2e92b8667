#include <cmath>

#include "kernels/recurrence.h"
#include "kernels/shapes.h"

namespace sb::loop {
using at::Tensor;

Scan decayed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, double scale,
                       const Tensor& state) {
  kernels::check_decayed_attention(q, k, v, g, state);
  const int64_t H = v.size(2), per_group = H / q.size(2);
  const Tensor queries = q.repeat_interleave(per_group, 2), keys = k.repeat_interleave(per_group, 2);
  Tensor S = state.defined() ? state : at::zeros({v.size(0), H, q.size(3), v.size(3)}, v.options());
  std::vector<Tensor> out;
  for (int64_t t = 0; t < v.size(1); ++t) {
    if (g.defined()) {
      const Tensor a = (g.dim() == 1 ? g : g.select(1, t)).exp();
      S = S * (g.dim() == 1 ? a.view({1, H, 1, 1}) : g.dim() == 3 ? a.unsqueeze(-1).unsqueeze(-1) : a.unsqueeze(-1));
    }
    S = S + keys.select(1, t).unsqueeze(-1) * v.select(1, t).unsqueeze(-2);
    out.push_back(scale * at::matmul(queries.select(1, t).unsqueeze(-2), S).squeeze(-2));
  }
  return {out.empty() ? at::zeros_like(v) : at::stack(out, 1), S};
}

}  // namespace sb::loop
