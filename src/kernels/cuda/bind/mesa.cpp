#include "kernels/cuda/mesa.h"

#include "kernels/cuda/bind/head_rows.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

// Keys and values side by side [B,T,H,K+V], strengths, log-decays, ridge, state?, kept states and solutions
enum MesaKept : size_t { kKeysValues, kStrengths, kLogDecays, kRidge, kFirstState, kStates, kSolved };

RowsOf<const float> float_rows(const Tensor& x) {
  return {float_data(x), x.stride(0), x.stride(1), x.stride(2)};
}

// The attention [G, S] whose states the solver reads: keys k, values beta k and beta v. TF32 is sufficient where
// values are bf16; the solver adds no further error of this size.
DecayedAttention mesa_states(const Tensors& c, const Tensor& q, const Tensor& written) {
  const Tensor &kv = c[kKeysValues], &g = c[kLogDecays];
  const int64_t K = c[kRidge].size(1);
  return {kv.size(0),
          kv.size(1),
          kv.size(2),
          kv.size(2),
          K,
          kv.size(3),
          Precision::tf32,
          Decay::scalar,
          1,
          head_rows<const void>(q),
          head_rows<const void>(kv),
          head_rows<const void>(written),
          float_data(g),
          g.stride(0),
          g.stride(1),
          g.stride(2),
          float_data(c[kFirstState])};
}

Mesa mesa_problem(const op::Mesa& op, const Tensors& c) {
  const Tensor& kv = c[kKeysValues];
  const int64_t K = c[kRidge].size(1), V = kv.size(3) - K;
  return {kv.size(0),
          kv.size(1),
          kv.size(2),
          K,
          V,
          op.steps,
          float_rows(kv),
          float_rows(kv.narrow(3, K, V)),
          float_data(c[kStrengths]),
          float_data(c[kLogDecays]),
          float_data(c[kRidge]),
          static_cast<const float*>(data(c[kStates]))};
}

}  // namespace

// Products are exact in float32 unless TF32 is allowed or values are bf16; those are left to ATen.
bool supports_mesa(const op::Mesa&, const Tensors& in) {
  for (const Tensor& x : in)
    if (!readable_or_absent(x)) return false;
  const int64_t K = in[0].size(3), V = in[2].size(3);
  if ((!is_low(in[2]) && !kernels::tf32_is_allowed()) || K > 128 || V > 128) return false;
  DecayedAttention p{};
  p.batch = p.time = p.heads = p.groups = 1, p.key_width = K, p.value_width = K + V;
  p.precision = Precision::tf32, p.decay = Decay::scalar;
  const c10::DeviceGuard on(in[2].device());
  return mesa_fits(K, V) && decayed_attention_fits(p);
}

// q, k, v, beta, g, ridge, state?
Tensors mesa(const op::Mesa& op, const Tensors& in, Tensors* saved) {
  const Tensor q = packed_last(in[0].to(at::kFloat));
  const Tensor kv = at::cat({in[1].to(at::kFloat), in[2].to(at::kFloat)}, -1);
  Tensors c{kv, floats(in[3]), floats(in[4]), floats(in[5]), floats(in[6])};
  const Tensor written = scale_heads(op::ScaleHeads{}, {kv, c[kStrengths]}, nullptr)[0];
  const int64_t B = kv.size(0), T = kv.size(1), H = kv.size(2), K = q.size(3), V = in[2].size(3);
  const OnDevice on(kv);

  // Only its states are used, not what q reads from them.
  const DecayedAttention p = mesa_states(c, q, written);
  const Tensor unused = fresh(kv.sizes(), kv), last = fresh({B, H, K, K + V}, kv);
  c.push_back(scratch(decayed_attention_kept_bytes(p), kv));
  const Tensor memory = scratch(decayed_attention_scratch_bytes(p), kv);
  on.check("mesa_attention", decayed_attention_forward(p, head_rows<void>(unused), float_data(last), data(c[kStates]),
                                                       data(memory), on.stream()));

  const Tensor x = fresh({B, T, H, K}, kv), out = fresh({B, T, H, V}, kv);
  on.check("mesa_attention",
           mesa_forward(mesa_problem(op, c), float_rows(q), float_data(x), float_data(out), on.stream()));
  if (saved) {
    c.push_back(x);
    *saved = c;
  }
  return {out.to(in[2].scalar_type()), last};
}

// With d the gradient of an output, y = (G + ridge)^{-1} S d is that of the query, and G_t x_t has gradient -y.
Tensors mesa_back(const op::Mesa& op, const Back& back) {
  const Tensors& c = back.saved;
  const Tensor &kv = c[kKeysValues], &x = c[kSolved], &g = c[kLogDecays], &state = c[kFirstState];
  const int64_t K = x.size(3), V = kv.size(3) - K;
  const Tensor d_out =
      back.d_out[0].defined() ? packed_last(back.d_out[0].to(at::kFloat)) : at::zeros_like(kv.narrow(3, K, V));
  const Tensor d_last = floats(back.d_out[1]), y = fresh_like(x);
  const OnDevice on(kv);
  on.check("mesa_attention", mesa_backward(mesa_problem(op, c), float_rows(d_out), float_data(y), on.stream()));

  const Tensor written = scale_heads(op::ScaleHeads{}, {kv, c[kStrengths]}, nullptr)[0];
  const Tensor d_read = at::cat({-y, d_out}, -1);
  const DecayedAttention p = mesa_states(c, x, written);
  const Tensor unused = fresh_like(x), dk = fresh_like(x), d_written = fresh_like(kv), dg = fresh_like(g);
  const Tensor d_state = state.defined() ? fresh_like(state) : Tensor();
  const DecayedAttentionGradients d{head_rows<const void>(d_read),
                                    float_data(d_last),
                                    head_rows<void>(unused),
                                    head_rows<void>(dk),
                                    head_rows<void>(d_written),
                                    float_data(dg),
                                    dg.stride(0),
                                    dg.stride(1),
                                    dg.stride(2),
                                    float_data(d_state)};
  const Tensor memory = scratch(decayed_attention_workspace_bytes(p), kv);
  on.check("mesa_attention", decayed_attention_backward(p, data(c[kStates]), d, data(memory), on.stream()));

  const Tensors scaled =
      scale_heads_back(op::ScaleHeads{}, Back{{kv, c[kStrengths]}, {d_written}, {true, true}, false, {}});
  return {y,
          dk + scaled[0].narrow(3, 0, K),
          scaled[0].narrow(3, K, V),
          scaled[1],
          dg,
          -(y * x).sum(at::IntArrayRef{0, 1}),
          d_state};
}

}  // namespace sb::cuda::bind
