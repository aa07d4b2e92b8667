#include "kernels/cuda/bind/tensors.h"
#include "kernels/cuda/rwkv7_rows.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

constexpr int64_t kMaxHead = 256;

Rwkv7Rows rows_of(const Tensor& x, int64_t heads) {
  const int64_t width = x.dim() == 4 ? x.size(3) : x.size(2) / heads;
  return {x.size(0) * x.size(1), static_cast<int>(heads), static_cast<int>(width), element_of(x)};
}

bool supports_heads(const Tensors& in, std::initializer_list<size_t> rows, int64_t width) {
  bool all = width <= kMaxHead && width % 2 == 0;
  for (const Tensor& x : in) all = all && readable(x);
  for (const size_t i : rows) all = all && same_type(in[i], in[*rows.begin()]);
  return all;
}

Tensor given_or_zeros(const Tensor& d, const Tensor& like, at::ScalarType type) {
  return d.defined() ? d.contiguous() : at::zeros(like.sizes(), like.options().dtype(type));
}

Rwkv7Keys keys_of(const Tensors& c, int64_t heads) {
  return {rows_of(c[2], heads), data(c[0]), data(c[1]), data(c[2]), float_data(c[3]), float_data(c[4])};
}

Rwkv7Read read_of(const op::Rwkv7Read& op, const Tensors& c) {
  return {rows_of(c[0], c[0].size(2)),
          static_cast<float>(op.eps),
          data(c[0]),
          data(c[1]),
          data(c[2]),
          data(c[3]),
          data(c[7]),
          float_data(c[4]),
          float_data(c[5]),
          float_data(c[6])};
}

}  // namespace

bool supports_rwkv7_keys(const op::Rwkv7Keys& op, const Tensors& in) {
  return supports_heads(in, {2, 0, 1}, in[2].size(2) / op.heads);
}

// decay, rate, key, key_scale, key_rate -> g, k, erase, write
Tensors rwkv7_keys(const op::Rwkv7Keys& op, const Tensors& in, Tensors* saved) {
  const Tensors c{in[0].contiguous(), in[1].contiguous(), in[2].contiguous(), floats(in[3]), floats(in[4])};
  const Rwkv7Keys p = keys_of(c, op.heads);
  const at::DimVector sizes{c[2].size(0), c[2].size(1), op.heads, p.rows.width};
  const Tensor g = fresh(sizes, c[2], at::kFloat), k = fresh(sizes, c[2]), erase = fresh(sizes, c[2]),
               write = fresh(sizes, c[2]);
  const OnDevice on(k);
  on.check("rwkv7_keys", rwkv7_keys_forward(p, {float_data(g), data(k), data(erase), data(write)}, on.stream()));
  if (saved) *saved = c;
  return {g, k, erase, write};
}

Tensors rwkv7_keys_back(const op::Rwkv7Keys& op, const Back& back) {
  const Tensors& c = back.saved;
  const Tensor& key = c[2];
  const auto type = key.scalar_type();
  const Tensor dg = given_or_zeros(back.d_out[0], key, at::kFloat), dk = given_or_zeros(back.d_out[1], key, type),
               d_erase = given_or_zeros(back.d_out[2], key, type), d_write = given_or_zeros(back.d_out[3], key, type);
  const Tensor d_decay = fresh_like(c[0]), d_rate = fresh_like(c[1]), d_key = fresh_like(key);
  const Tensor d_parameters = fresh({2, key.size(2)}, c[3]);
  const Rwkv7Keys p = keys_of(c, op.heads);
  const Tensor memory = scratch(rwkv7_scratch_bytes(p.rows), key);
  const OnDevice on(key);
  on.check("rwkv7_keys", rwkv7_keys_backward(p,
                                             {float_data(dg), data(dk), data(d_erase), data(d_write), data(d_decay),
                                              data(d_rate), data(d_key), float_data(d_parameters)},
                                             data(memory), on.stream()));
  return {d_decay, d_rate, d_key, d_parameters[0], d_parameters[1]};
}

bool supports_rwkv7_read(const op::Rwkv7Read&, const Tensors& in) {
  return supports_heads(in, {0, 1, 2, 3, 7}, in[0].size(3));
}

// o, r, k, v, bonus, gain, bias, gate -> y
Tensors rwkv7_read(const op::Rwkv7Read& op, const Tensors& in, Tensors* saved) {
  const Tensors c{in[0].contiguous(), in[1].contiguous(), in[2].contiguous(), in[3].contiguous(),
                  floats(in[4]),      floats(in[5]),      floats(in[6]),      in[7].contiguous()};
  const Tensor y = fresh_like(c[7]);
  const OnDevice on(y);
  on.check("rwkv7_read", rwkv7_read_forward(read_of(op, c), data(y), on.stream()));
  if (saved) *saved = c;
  return {y};
}

Tensors rwkv7_read_back(const op::Rwkv7Read& op, const Back& back) {
  const Tensors& c = back.saved;
  const Tensor dy = back.d_out[0].contiguous();
  const Tensor d_o = fresh_like(c[0]), dr = fresh_like(c[1]), dk = fresh_like(c[2]), dv = fresh_like(c[3]),
               d_gate = fresh_like(c[7]), d_parameters = fresh({3, c[5].size(0)}, c[5]);
  const Rwkv7Read p = read_of(op, c);
  const Tensor memory = scratch(rwkv7_scratch_bytes(p.rows), dy);
  const OnDevice on(dy);
  on.check("rwkv7_read",
           rwkv7_read_backward(
               p, {data(dy), data(d_o), data(dr), data(dk), data(dv), data(d_gate), float_data(d_parameters)},
               data(memory), on.stream()));
  return {d_o, dr, dk, dv, d_parameters[0].view(c[4].sizes()), d_parameters[1], d_parameters[2], d_gate};
}

}  // namespace sb::cuda::bind
