// The recurrences behind all models. Shapes: B batch, T time, H heads, K/V key/value width. Every function is
// differentiable in all tensor arguments, including the initial state. All but (d) return the final state; (d)
// returns all states. So a sequence can be processed in pieces. Each has a plain loop (naive/) and a form in ATen
// operations (aten/); most also have kernels (cpu/, cuda/). The first tensor selects one (backend.h). If the
// operands have a half-precision type, then states, log-decays, steps, write strengths and parameters may be float32.
// States are then returned in float32.
#pragma once
#include <ATen/core/Tensor.h>

namespace sb {

struct OutAndState {
  at::Tensor out;
  at::Tensor state;  // after the last step
};

// (a) h_t[c,n] = exp(-delta_t[c] e^{A_log[c,n]}) h_{t-1}[c,n] + w_t[c] B_t[n] x_t[c];  y_t[c] = sum_n C_t[n] h_t[c,n] +
// skip[c] x_t[c]. x, delta [B,T,D]; A_log [D,N]; B, C [B,T,N]; skip [D]; state [B,D,N] (undefined: zeros). w = delta
// (complementary gating), or `write` [B,T,D] if it is defined (decoupled). The factor of h_{t-1} is at least a_min.
OutAndState selective_scan(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& A_log, const at::Tensor& B,
                           const at::Tensor& C, const at::Tensor& skip, const at::Tensor& state = {},
                           const at::Tensor& write = {}, double a_min = 0);

// (b) S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T;  o_t = scale q_t^T S_t
// q, k [B,T,G,K] with H % G == 0 (H/G heads share a group); v [B,T,H,V]; state [B,H,K,V] (undefined: zeros).
// g is the log-decay, <= 0: undefined (no decay), [H] (fixed), [B,T,H] (scalar) or [B,T,H,K] (vector).
OutAndState decayed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& g,
                              double scale, const at::Tensor& state = {});

// (b) with Mamba2's values and skip connection: out = decayed_attention(q, k, w x, g) + skip x. x [B,T,H,V]; g and
// write w [B,T,H]; skip [H], one factor per head. attention_writes() tells whether the device has one kernel for all of
// this; if not, call the parts instead.
OutAndState written_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& x, const at::Tensor& g,
                              const at::Tensor& write, const at::Tensor& skip, double scale,
                              const at::Tensor& state = {});
bool attention_writes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& x, const at::Tensor& g,
                      const at::Tensor& write, const at::Tensor& skip, const at::Tensor& state = {});

// (c) S <- e^{g_t} S;  for j = 1..n: S <- S + beta_{t,j} k_{t,j} (v_{t,j} - k_{t,j}^T S);  o_t = scale q_t^T S
// q [B,T,H,K]; k [B,T,n,H,K]; v [B,T,n,H,V]; beta [B,T,n,H]; g [B,T,H] (undefined: no decay); state [B,H,K,V].
OutAndState gated_delta_rule(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& beta,
                             const at::Tensor& g, double scale, const at::Tensor& state = {});

// (c') S' = diag(e^{g_t}) S;  S <- S' - w_t (e_t^T S'') + k_t v_t^T;  o_t = scale q_t^T S
// S'' is S' or, with EraseFrom::before_decay, S. q, k, erase e, write w [B,T,H,K]; v [B,T,H,V]; state [B,H,K,V].
// g is undefined (no decay), [B,T,H] or [B,T,H,K]. (c) with one factor is e = k, w = beta k, v -> beta v. If w and k are
// the same tensor, the CPU kernel takes half the operations.
struct DeltaOperands {
  at::Tensor q, k, v, erase, write, g;
};
enum class EraseFrom { after_decay, before_decay };
OutAndState general_delta_rule(const DeltaOperands& x, double scale, EraseFrom from, const at::Tensor& state = {});

// (d) GRU with gates r, z, n: r, z = sigma(i + h W^T + b), n = tanh(i + r (h W^T + b)), h' = n + z (h - n)
// input_gates [B,T,3d] = x W_ih^T + b_ih in the order r, z, n; weight_hh [3d,d]; bias_hh [3d]; first [B,d]: the initial
// state. Returns all states [B,T,d]. z is at least a_min.
at::Tensor gru_sequence(const at::Tensor& input_gates, const at::Tensor& weight_hh, const at::Tensor& bias_hh,
                        const at::Tensor& first, double a_min = 0);

// (e) S_t = e^{g_t} (S_{t-1} + before_t k_{t-1} v_{t-1}^T) + here_t k_t v_t^T;  o_t = scale q_t^T S_t + skip v_t
// q, k [B,T,H,K]; v [B,T,H,V]; g, here, before [B,T,H]; skip [H]. `first`: state and frame before the first. Undefined
// ones are zeros.
// Output t does not depend on later frames, not even in its rounding.
struct TrapezoidStart {
  at::Tensor state, k, v;  // [B,H,K,V]; of the last frame: [B,H,K], [B,H,V]
};
OutAndState trapezoid_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& g,
                                const at::Tensor& here, const at::Tensor& before, const at::Tensor& skip, double scale,
                                const TrapezoidStart& first = {});

// (f) G_t = e^{g_t} G_{t-1} + beta_t k_t k_t^T;  S_t = e^{g_t} S_{t-1} + beta_t k_t v_t^T
// o_t = S_t^T (G_t + diag(ridge))^{-1} q_t, solved by `steps` steps of conjugate gradients (naive: exactly)
// q, k [B,T,H,K]; v [B,T,H,V]; beta, g [B,T,H]; ridge [H,K], > 0; state [B,H,K,K+V] holds G, then S. q and k may be
// float32 beside values in half precision.
OutAndState mesa_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& beta,
                           const at::Tensor& g, const at::Tensor& ridge, int64_t steps, const at::Tensor& state = {});

// (g) o_t = sum over s <= t of w_t[level(t, s)] e^{g_{s+1} + … + g_t} (q_t . k_s) v_s
// level(t, s) = 0 if t = s, else 1 + floor(log2(t xor s)), at most L - 1, with positions counted from the start of the
// sequence; `position` is that of the first frame. q, k [B,T,G,K] with H % G == 0; v [B,T,H,V]; g [B,T,H]; weights w
// [B,T,H,L], L >= 8. The state [B,H,L-1,K,V] holds the sum of each level but 0 that frame `position` would read.
// Without final_state, the state is returned undefined. Only whole sequences without it have kernels for GPUs.
OutAndState log_linear_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& g,
                                 const at::Tensor& weights, int64_t position = 0, const at::Tensor& state = {},
                                 bool final_state = true);

}  // namespace sb
