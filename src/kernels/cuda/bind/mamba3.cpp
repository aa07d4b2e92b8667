#include <cmath>

#include "kernels/cuda/bind/tensors.h"
#include "kernels/cuda/mamba3_rows.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

constexpr int64_t kMaxGateHeads = 256;

// c: dt, rate, trap, bias
Mamba3Gates mamba3_gates_of(const Tensors& c) {
  const Held dt = by_rows(c[0]);
  return {dt.tokens, dt.width, element_of(c[0]), dt.in(), by_rows(c[1]).in(), by_rows(c[2]).in(), float_data(c[3])};
}

// Rows whose pairs of elements are aligned
Tensor by_pairs(const Tensor& x) {
  const Held rows = by_rows(x);
  const auto bytes = static_cast<uintptr_t>(2 * rows.x.element_size());
  const bool aligned = rows.token % 2 == 0 && reinterpret_cast<uintptr_t>(rows.x.data_ptr()) % bytes == 0;
  return aligned ? rows.x : x.contiguous();
}

// c: key, query, key_gain, query_gain, key_bias, query_bias, turn, step, angle?
Mamba3Keys mamba3_keys_of(const Tensors& c) {
  Mamba3Keys p;
  p.batch = c[0].size(0), p.time = c[0].size(1);
  p.heads = static_cast<int>(c[7].size(2)), p.states = static_cast<int>(c[0].size(2));
  p.element = element_of(c[0]);
  p.key = by_rows(c[0]).in(), p.query = by_rows(c[1]).in(), p.turn = by_rows(c[6]).in();
  p.key_gain = float_data(c[2]), p.query_gain = float_data(c[3]);
  p.key_bias = float_data(c[4]), p.query_bias = float_data(c[5]);
  p.step = float_data(c[7]);
  p.angle = static_cast<const double*>(data(c[8]));
  return p;
}

Tensor gradient_by_pairs(const Back& back, size_t input, const Tensor& like) {
  const Tensor x = gradient_by_rows(back, input, like);
  return by_pairs(x).is_same(x) ? x : fresh(like.sizes(), like);
}

Tensor given_or_zeros(const Tensor& d, at::IntArrayRef sizes, const Tensor& like) {
  return d.defined() ? d.contiguous() : at::zeros(sizes, like.options());
}

}  // namespace

bool supports_mamba3_gates(const op::Mamba3Gates&, const Tensors& in) {
  bool all = in[0].size(2) <= kMaxGateHeads;
  for (const Tensor& x : in) all = all && readable(x);
  return all && same_type(in[0], in[1]) && same_type(in[0], in[2]);
}

// dt, rate, trap, bias -> step, decay, here, before
Tensors mamba3_gates(const op::Mamba3Gates&, const Tensors& in, Tensors* saved) {
  const Tensors c{by_rows(in[0]).x, by_rows(in[1]).x, by_rows(in[2]).x, floats(in[3])};
  Tensors out;
  for (int i = 0; i < 4; ++i) out.push_back(fresh(in[0].sizes(), in[0], at::kFloat));
  const OnDevice on(out[0]);
  on.check("mamba3_gates",
           mamba3_gates_forward(mamba3_gates_of(c),
                                {float_data(out[0]), float_data(out[1]), float_data(out[2]), float_data(out[3])},
                                on.stream()));
  if (saved) *saved = c;
  return out;
}

Tensors mamba3_gates_back(const op::Mamba3Gates&, const Back& back) {
  const Tensors& c = back.saved;
  Tensors given;
  for (const Tensor& d : back.d_out) given.push_back(floats(d));
  const Tensor d_dt = gradient_by_rows(back, 0, c[0]), d_rate = gradient_by_rows(back, 1, c[1]),
               d_trap = gradient_by_rows(back, 2, c[2]), d_bias = fresh_like(c[3]);
  const Mamba3Gates p = mamba3_gates_of(c);
  const OnDevice on(d_dt);
  const Tensor memory = scratch(mamba3_gates_scratch_bytes(p), d_dt);
  on.check("mamba3_gates", mamba3_gates_backward(
                               p,
                               {float_data(given[0]), float_data(given[1]), float_data(given[2]), float_data(given[3]),
                                by_rows(d_dt).out(), by_rows(d_rate).out(), by_rows(d_trap).out(), float_data(d_bias)},
                               data(memory), on.stream()));
  return {d_dt, d_rate, d_trap, d_bias};
}

bool supports_mamba3_keys(const op::Mamba3Keys&, const Tensors& in) {
  bool all = true;
  for (size_t i = 0; i < 8; ++i) all = all && readable(in[i]);
  return all && same_type(in[0], in[1]) && same_type(in[0], in[6]) && 4 * in[6].size(2) == in[0].size(2) &&
         mamba3_keys_fit(in[7].size(2), in[0].size(2)) && (!in[8].defined() || in[8].scalar_type() == at::kDouble);
}

// key, query, key_gain, query_gain, key_bias, query_bias, turn, step, angle? -> k, q, angle
Tensors mamba3_keys(const op::Mamba3Keys&, const Tensors& in, Tensors* saved) {
  const Tensors c{by_pairs(in[0]), by_pairs(in[1]),  floats(in[2]), floats(in[3]),    floats(in[4]),
                  floats(in[5]),   by_rows(in[6]).x, floats(in[7]), contiguous(in[8])};
  const Mamba3Keys p = mamba3_keys_of(c);
  const at::DimVector sizes{p.batch, p.time, p.heads, p.states};
  const Tensor k = fresh(sizes, c[0]), q = fresh(sizes, c[0]),
               angle = fresh({p.batch, p.heads, p.states / 4}, c[0], at::kDouble),
               kept = scratch(mamba3_kept_bytes(p), k);
  const OnDevice on(k);
  on.check("mamba3_keys",
           mamba3_keys_forward(p, {data(k), data(q), angle.data_ptr<double>()}, data(kept), on.stream()));
  if (saved) {
    *saved = c;
    saved->push_back(kept);
  }
  return {k, q, angle};
}

Tensors mamba3_keys_back(const op::Mamba3Keys&, const Back& back) {
  const Tensors& c = back.saved;
  const Mamba3Keys p = mamba3_keys_of(c);
  const at::DimVector sizes{p.batch, p.time, p.heads, p.states};
  const Tensor dk = given_or_zeros(back.d_out[0], sizes, c[0]), dq = given_or_zeros(back.d_out[1], sizes, c[0]),
               d_angle_out = contiguous(back.d_out[2]);
  const Tensor d_key = gradient_by_pairs(back, 0, c[0]), d_query = gradient_by_pairs(back, 1, c[1]),
               d_turn = gradient_by_rows(back, 6, c[6]), d_step = fresh_like(c[7]),
               d_gains = fresh({2, p.states}, c[2]), d_biases = fresh({2, p.heads, p.states}, c[4]),
               d_angle = c[8].defined() ? fresh_like(c[8]) : Tensor();
  const OnDevice on(dk);
  const Tensor memory = scratch(mamba3_keys_scratch_bytes(p), dk);
  on.check("mamba3_keys", mamba3_keys_backward(
                              p,
                              {data(dk), data(dq), static_cast<const double*>(data(d_angle_out)), by_rows(d_key).out(),
                               by_rows(d_query).out(), by_rows(d_turn).out(), float_data(d_gains), float_data(d_biases),
                               float_data(d_step), static_cast<double*>(data(d_angle))},
                              data(c[9]), data(memory), on.stream()));
  return {d_key, d_query, d_gains[0], d_gains[1], d_biases[0], d_biases[1], d_turn, d_step, d_angle};
}

}  // namespace sb::cuda::bind
