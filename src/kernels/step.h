// One step of the recurrences with an explicit state, for streaming in constant memory. Shapes are those of
// recurrence.h without the time axis.
#pragma once
#include "kernels/recurrence.h"

namespace sb {

// selective_scan for T = 1. x, delta, out [B,D]; B, C [B,N]; state [B,D,N] (undefined: zeros); write [B,D] or
// undefined.
OutAndState selective_scan_step(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& A_log,
                                const at::Tensor& B, const at::Tensor& C, const at::Tensor& skip,
                                const at::Tensor& state = {}, const at::Tensor& write = {}, double a_min = 0);

// The next three functions update the state in place, have no gradients, and return the output of the step, [B,H,V].
// S <- diag(e^g) S + k v^T;  o = scale q^T S
// q, k [B,G,K]; v [B,H,V]; g undefined, [H], [B,H] or [B,H,K]; state [B,H,K,V].
at::Tensor decayed_attention_step(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& g,
                                  double scale, at::Tensor& state);

// S <- e^g S;  for j = 1..n: S <- S + beta_j k_j (v_j - k_j^T S);  o = scale q^T S
// q [B,H,K]; k [B,n,H,K]; v [B,n,H,V]; beta [B,n,H]; g undefined or [B,H]; state [B,H,K,V].
at::Tensor gated_delta_rule_step(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& beta,
                                 const at::Tensor& g, double scale, at::Tensor& state);

// log_linear_attention for T = 1, with the time axis: the loop, which is faster for one frame. Has gradients.
OutAndState log_linear_attention_step(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const at::Tensor& g, const at::Tensor& weights, int64_t position,
                                      const at::Tensor& state = {});

// general_delta_rule for T = 1: q, k, erase, write [B,H,K]; v [B,H,V]; g undefined, [B,H] or [B,H,K]; state [B,H,K,V].
at::Tensor general_delta_rule_step(const DeltaOperands& x, double scale, EraseFrom from, at::Tensor& state);

}  // namespace sb
