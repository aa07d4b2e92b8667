#include "base/torch_pch.h"
#include "models/ops.h"

namespace sb {

at::Tensor carried_selective_scan(const Context& context, const at::Tensor& x, const at::Tensor& delta,
                                  const at::Tensor& A_log, const at::Tensor& B, const at::Tensor& C,
                                  const at::Tensor& skip, const at::Tensor& write) {
  auto scan = selective_scan(x, delta, A_log, B, C, skip, context.carried("state"), write);
  context.carry("state", scan.state);
  return scan.out;
}

at::Tensor carried_attention(const Context& context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& g, double scale) {
  auto scan = decayed_attention(q, k, v, g, scale, context.carried("state"));
  context.carry("state", scan.state);
  return scan.out;
}

at::Tensor carried_delta_rule(const Context& context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& beta, const at::Tensor& g, double scale) {
  auto scan = gated_delta_rule(q, k, v, beta, g, scale, context.carried("state"));
  context.carry("state", scan.state);
  return scan.out;
}

}  // namespace sb
