#include "kernels/recurrence.h"
#include "kernels/shapes.h"

namespace sb::loop {
using at::Tensor;

Scan gated_delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& g,
                      double scale, const Tensor& state) {
  kernels::check_gated_delta_rule(q, k, v, beta, g, state);
  Tensor S = state.defined() ? state : at::zeros({q.size(0), q.size(2), q.size(3), v.size(4)}, v.options());
  std::vector<Tensor> out;
  for (int64_t t = 0; t < q.size(1); ++t) {
    if (g.defined()) S = S * g.select(1, t).exp().unsqueeze(-1).unsqueeze(-1);
    for (int64_t j = 0; j < k.size(2); ++j) {
      const Tensor kj = k.select(1, t).select(1, j), vj = v.select(1, t).select(1, j);
      const Tensor strength = beta.select(1, t).select(1, j).unsqueeze(-1);
      const Tensor read = at::matmul(kj.unsqueeze(-2), S).squeeze(-2);
      S = S + kj.unsqueeze(-1) * (strength * (vj - read)).unsqueeze(-2);
    }
    out.push_back(scale * at::matmul(q.select(1, t).unsqueeze(-2), S).squeeze(-2));
  }
  return {out.empty() ? at::zeros({q.size(0), 0, q.size(2), v.size(4)}, v.options()) : at::stack(out, 1), S};
}

}  // namespace sb::loop
