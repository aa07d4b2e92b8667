#include "kernels/shapes.h"

#include "base/error.h"
#include "kernels/check.h"
#include "kernels/cpu/simd.h"
#include "kernels/plain_mode.h"
#include "kernels/poison.h"

namespace sb::kernels {
using at::Tensor;

void check_decayed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& state) {
  const char* where = "decayed_attention";
  check_shape(where, "v", v, {-1, -1, -1, -1});
  const int64_t B = v.size(0), T = v.size(1), H = v.size(2);
  check_shape(where, "q", q, {B, T, -1, -1});
  const int64_t G = q.size(2), K = q.size(3);
  if (G < 1 || H % G != 0) {
    throw bad_input(where, "heads of q, expected a divisor of " + std::to_string(H) + ", got " + std::to_string(G));
  }
  check_shape(where, "k", k, {B, T, G, K});
  if (g.defined()) {
    if (g.dim() == 1) {
      check_shape(where, "g", g, {H});
    } else if (g.dim() == 3) {
      check_shape(where, "g", g, {B, T, H});
    } else {
      check_shape(where, "g", g, {B, T, H, K});
    }
  }
  if (state.defined()) check_shape(where, "state", state, {B, H, K, v.size(3)});
  check_alike(where, v, {q, k, g, state});
}

void check_gated_delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& g,
                            const Tensor& state) {
  const char* where = "gated_delta_rule";
  check_shape(where, "q", q, {-1, -1, -1, -1});
  const int64_t B = q.size(0), T = q.size(1), H = q.size(2), K = q.size(3);
  check_shape(where, "k", k, {B, T, -1, H, K});
  const int64_t n = k.size(2);
  constexpr int64_t most = 256;
  if (n < 1 || n > most) {
    throw bad_input(where, "factors, expected 1 to " + std::to_string(most) + ", got " + std::to_string(n));
  }
  check_shape(where, "v", v, {B, T, n, H, -1});
  check_shape(where, "beta", beta, {B, T, n, H});
  if (g.defined()) check_shape(where, "g", g, {B, T, H});
  if (state.defined()) check_shape(where, "state", state, {B, H, K, v.size(4)});
  check_alike(where, v, {q, k, beta, g, state});
}

bool has_cpu_kernel(const Tensor& t) {
  return t.device().is_cpu() && (t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble) && !plain_mode();
}

template <class T>
Tensor start_states(const Tensor& state, int64_t B, int64_t H, int64_t K, int64_t V, int64_t slots,
                    const at::TensorOptions& options) {
  const int64_t Kp = cpu::padded<T>(K), Vp = cpu::padded<T>(V);
  Tensor states = fresh({B * H, slots, Kp, Vp}, options);
  Tensor first = states.select(1, 0);
  if (!state.defined() || Kp != K || Vp != V) first.zero_();
  if (state.defined()) first.narrow(1, 0, K).narrow(2, 0, V).copy_(state.reshape({B * H, K, V}));
  return states;
}
template Tensor start_states<float>(const Tensor&, int64_t, int64_t, int64_t, int64_t, int64_t,
                                    const at::TensorOptions&);
template Tensor start_states<double>(const Tensor&, int64_t, int64_t, int64_t, int64_t, int64_t,
                                     const at::TensorOptions&);

Tensor unpadded_state(const Tensor& states, int64_t slot, int64_t B, int64_t H, int64_t K, int64_t V) {
  Tensor state = fresh({B, H, K, V}, states.options());
  state.view({B * H, K, V}).copy_(states.select(1, slot).narrow(1, 0, K).narrow(2, 0, V));
  return state;
}

}  // namespace sb::kernels
