// One step of the recurrences with an explicit state, updated in place: constant memory for streaming. Without
// gradients. Shapes are those of recurrence.h without the time axis; the result is the output of the step, [B,H,V].
#pragma once
#include <ATen/core/Tensor.h>

namespace sb {

// S <- diag(e^g) S + k v^T;  o = scale q^T S
// q, k [B,G,K]; v [B,H,V]; g undefined, [H], [B,H] or [B,H,K]; state [B,H,K,V].
at::Tensor decayed_attention_step(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& g,
                                  double scale, at::Tensor& state);

// S <- e^g S;  for j = 1..n: S <- S + beta_j k_j (v_j - k_j^T S);  o = scale q^T S
// q [B,H,K]; k [B,n,H,K]; v [B,n,H,V]; beta [B,n,H]; g undefined or [B,H]; state [B,H,K,V].
at::Tensor gated_delta_rule_step(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& beta,
                                 const at::Tensor& g, double scale, at::Tensor& state);

}  // namespace sb
