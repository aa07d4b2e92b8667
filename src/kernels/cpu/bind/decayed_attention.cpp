#include "kernels/cpu/decayed_attention.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

struct AttentionShape {
  int64_t B, T, H, G, K, V;
  Decay decay;
  AttentionShape(const Tensor& q, const Tensor& v, const Tensor& g)
      : B(v.size(0)),
        T(v.size(1)),
        H(v.size(2)),
        G(q.size(2)),
        K(q.size(3)),
        V(v.size(3)),
        decay(!g.defined()   ? Decay::unit
              : g.dim() == 1 ? Decay::fixed
              : g.dim() == 3 ? Decay::scalar
                             : Decay::vector) {}
  int64_t chunks() const { return (T + kChunk - 1) / kChunk; }
  template <class T_>
  int64_t scratch() const {
    return decay == Decay::vector ? vector_attention_scratch<T_>(K, V) : scalar_attention_scratch<T_>(K, V);
  }
};

template <class T>
AttentionHead<T> attention_head(const AttentionShape& z, int64_t task, const Tensor& q, const Tensor& k,
                                const Tensor& v, const Tensor& g, double scale, const Tensor& states) {
  const int64_t b = task / z.H, h = task % z.H, group = h / (z.H / z.G);
  AttentionHead<T> head;
  head.steps = z.T;
  head.K = z.K;
  head.V = z.V;
  head.scale = scale;
  head.q = q.data_ptr<T>() + b * q.stride(0) + group * q.stride(2);
  head.k = k.data_ptr<T>() + b * k.stride(0) + group * k.stride(2);
  head.v = v.data_ptr<T>() + b * v.stride(0) + h * v.stride(2);
  head.q_stride = q.stride(1);
  head.k_stride = k.stride(1);
  head.v_stride = v.stride(1);
  head.g = nullptr;
  head.g_stride = 0;
  if (z.decay == Decay::fixed) {
    head.g = g.data_ptr<T>() + h * g.stride(0);
  } else if (z.decay != Decay::unit) {
    head.g = g.data_ptr<T>() + b * g.stride(0) + h * g.stride(2);
    head.g_stride = g.stride(1);
  }
  head.states = states.data_ptr<T>() + task * states.stride(0);
  head.keep_states = states.size(1) > 1;
  return head;
}

// Sum over the heads of a group, in their order: [B,T,H,K] to [B,T,G,K].
Tensor sum_groups(const Tensor& x, int64_t groups) {
  if (x.size(2) == groups) return x;
  const Tensor sum = fresh({x.size(0), x.size(1), groups, x.size(3)}, x.options());
  with_type_of(x, [&](auto type) {
    using T = decltype(type);
    sum_head_groups(x.size(0) * x.size(1) * groups, x.size(2) / groups, x.size(3), x.data_ptr<T>(), sum.data_ptr<T>());
  });
  return sum;
}

// [B,H,T] to [H], batch after batch and step after step
Tensor sum_fixed_decay(const Tensor& dg) {
  const int64_t H = dg.size(1), time = dg.size(2);
  const Tensor sum = at::zeros({H}, dg.options());
  with_type_of(dg, [&](auto type) {
    using T = decltype(type);
    const T* x = dg.data_ptr<T>();
    T* s = sum.data_ptr<T>();
    for (int64_t b = 0; b < dg.size(0); ++b) {
      for (int64_t i = 0; i < H * time; ++i) s[i / time] += x[b * H * time + i];
    }
  });
  return sum;
}

template <class T>
AttentionHeadGradients<T> attention_head_gradients(const AttentionShape& z, int64_t task, const Tensor& d_out,
                                                   const Tensor& d_state, const Tensor& dq, const Tensor& dk,
                                                   const Tensor& dv, const Tensor& dg) {
  const int64_t b = task / z.H, h = task % z.H;
  AttentionHeadGradients<T> grad;
  grad.d_out = d_out.data_ptr<T>() + b * d_out.stride(0) + h * d_out.stride(2);
  grad.d_out_stride = d_out.stride(1);
  grad.d_state = d_state.data_ptr<T>() + task * d_state.stride(0);
  grad.dq = dq.data_ptr<T>() + b * dq.stride(0) + h * dq.stride(2);
  grad.dk = dk.data_ptr<T>() + b * dk.stride(0) + h * dk.stride(2);
  grad.dv = dv.data_ptr<T>() + b * dv.stride(0) + h * dv.stride(2);
  grad.dq_stride = dq.stride(1);
  grad.dk_stride = dk.stride(1);
  grad.dv_stride = dv.stride(1);
  grad.dg = nullptr;
  grad.dg_stride = 0;
  if (z.decay == Decay::fixed) {
    grad.dg = dg.data_ptr<T>() + task * z.T;
    grad.dg_stride = 1;
  } else if (dg.defined()) {
    grad.dg = dg.data_ptr<T>() + b * dg.stride(0) + h * dg.stride(2);
    grad.dg_stride = dg.stride(1);
  }
  return grad;
}

}  // namespace

// q, k, v, g?, state?
Tensors decayed_attention(const op::DecayedAttention& op, const Tensors& in, Tensors* saved) {
  const Tensor q = rows_of(in[0]), k = rows_of(in[1]), v = rows_of(in[2]);
  const Tensor g = in[3].defined() && in[3].dim() == 4 ? rows_of(in[3]) : in[3];
  const AttentionShape z(q, v, g);
  const Tensor out = fresh({z.B, z.T, z.H, z.V}, v.options());
  // [B H, chunks + 1 (or 1), padded K, padded V]
  const Tensor states = start_states(in[4], z.B, z.H, z.K, z.V, saved ? z.chunks() + 1 : 1, v.options());
  with_type_of(v, [&](auto type) {
    using T = decltype(type);
    T* o = out.data_ptr<T>();
    for_each_task<T>(z.B * z.H, z.scratch<T>(), [&](int64_t task, Arena<T>& arena) {
      const auto head = attention_head<T>(z, task, q, k, v, g, op.scale, states);
      T* rows = o + task / z.H * z.T * z.H * z.V + task % z.H * z.V;
      if (z.decay == Decay::vector) {
        vector_attention_forward(head, rows, z.H * z.V, arena);
      } else {
        scalar_attention_forward(z.decay, head, rows, z.H * z.V, arena);
      }
    });
  });
  if (saved) *saved = {q, k, v, g, states};
  return {out, unpadded_state(states, saved ? z.chunks() : 0, z.B, z.H, z.K, z.V)};
}

Tensors decayed_attention_back(const op::DecayedAttention& op, const kernels::Back& back) {
  const Tensor &q = back.saved[0], &k = back.saved[1], &v = back.saved[2], &g = back.saved[3], &states = back.saved[4];
  const AttentionShape z(q, v, g);
  const Tensor d_out = back.d_out[0].defined() ? rows_of(back.d_out[0]) : at::zeros({z.B, z.T, z.H, z.V}, v.options());
  const auto make = [&](at::IntArrayRef sizes) { return fresh(sizes, v.options()); };
  // Of every head first; those of a group are summed.
  const auto by_head = [&](size_t input) {
    const std::vector<int64_t> sizes{z.B, z.T, z.H, z.K};
    return z.G == z.H ? gradient_of(back, input, sizes, v.options()) : make(sizes);
  };
  const Tensor dq = by_head(0), dk = by_head(1), dv = gradient_of(back, 2, {z.B, z.T, z.H, z.V}, v.options());
  const Tensor d_state = start_states(back.d_out[1], z.B, z.H, z.K, z.V, 1, v.options());
  Tensor dg;
  if (z.decay == Decay::fixed) dg = make({z.B, z.H, z.T});
  if (z.decay == Decay::scalar) dg = make({z.B, z.T, z.H});
  if (z.decay == Decay::vector) dg = make({z.B, z.T, z.H, z.K});
  with_type_of(v, [&](auto type) {
    using T = decltype(type);
    for_each_task<T>(z.B * z.H, z.scratch<T>(), [&](int64_t task, Arena<T>& arena) {
      const auto head = attention_head<T>(z, task, q, k, v, g, op.scale, states);
      const auto grad = attention_head_gradients<T>(z, task, d_out, d_state, dq, dk, dv, dg);
      if (z.decay == Decay::vector) {
        vector_attention_backward(head, grad, arena);
      } else {
        scalar_attention_backward(z.decay, head, grad, arena);
      }
    });
  });
  if (z.decay == Decay::fixed) dg = sum_fixed_decay(dg);
  return {sum_groups(dq, z.G), sum_groups(dk, z.G), dv, dg, unpadded_state(d_state, 0, z.B, z.H, z.K, z.V)};
}

}  // namespace sb::cpu
